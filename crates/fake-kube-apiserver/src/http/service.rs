//! The server as a tower service: no sockets, no tasks, the clock is tokio's.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::error::BoxError;
use crate::http::body::ApiBody;
use crate::http::handler;
use crate::server::{ApiServer, Shared};

/// The server as a [`tower_service::Service`]; made by [`ApiServer::service`](crate::ApiServer::service).
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
type ApiFuture = Pin<Box<dyn Future<Output = Result<Response<ApiBody>, BoxError>> + Send>>;

impl ApiServer {
    /// The server as a tower service, without sockets.
    #[must_use]
    pub fn service(&self) -> ApiService {
        ApiService { shared: Arc::clone(&self.shared), user: None }
    }
}

// === impl ApiService ===

impl ApiService {
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
