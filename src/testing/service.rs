//! The server as a tower service: no sockets, no tasks, the clock is tokio's.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use tower_service::Service;

use super::changes::Break;
use super::handler;
use super::server::Shared;
use super::watch::WatchBody;

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The connection was lost: a fault has dropped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionDropped;

/// The server as a [`tower_service::Service`]; made by [`ApiServer::service`](super::ApiServer::service).
///
/// A request takes effect while its future is polled; dropping the future before that takes the request back,
/// as hanging up does over a network. Always ready. A connection that a fault drops is the error
/// [`ConnectionDropped`].
#[derive(Clone, Debug)]
pub struct ApiService {
    shared: Arc<Shared>,
    user: Option<Arc<str>>,
}

/// The future of an answer.
pub type ApiFuture = Pin<Box<dyn Future<Output = Result<Response<ApiBody>, BoxError>> + Send>>;

/// The body of an answer. Dropping that of a watch ends the watch.
#[derive(Debug)]
pub struct ApiBody(Inner);

#[derive(Debug)]
enum Inner {
    Whole(Option<Bytes>),
    Watch(Box<WatchBody>),
}

// === impl ApiService ===

impl ApiService {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, user: None }
    }

    /// Requests without a bearer token come from this user.
    #[must_use]
    pub fn user(self, user: &str) -> Self {
        Self { user: Some(user.into()), ..self }
    }
}

impl<B> Service<Request<B>> for ApiService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<ApiBody>;
    type Error = BoxError;
    type Future = ApiFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ApiFuture {
        Box::pin(handler::handle(Arc::clone(&self.shared), self.user.clone(), request))
    }
}

// === impl ApiBody ===

impl ApiBody {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self(Inner::Whole(Some(bytes).filter(|it| !it.is_empty())))
    }

    pub(super) fn watch(watch: WatchBody) -> Self {
        Self(Inner::Watch(Box::new(watch)))
    }

    /// Breaks a watch behind what it sends first.
    pub(super) fn break_off(&mut self, how: Break) {
        if let Inner::Watch(watch) = &mut self.0 {
            watch.break_off(how);
        }
    }
}

impl Body for ApiBody {
    type Data = Bytes;
    type Error = ConnectionDropped;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionDropped>>> {
        match &mut self.get_mut().0 {
            Inner::Whole(bytes) => Poll::Ready(bytes.take().map(|it| Ok(Frame::data(it)))),
            Inner::Watch(watch) => watch.poll_piece(context).map(|it| it.map(|it| it.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Inner::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |it| it.len() as u64)),
            Inner::Watch(_) => SizeHint::default(),
        }
    }
}

// === impl ConnectionDropped ===

impl fmt::Display for ConnectionDropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection was dropped")
    }
}

impl std::error::Error for ConnectionDropped {}
