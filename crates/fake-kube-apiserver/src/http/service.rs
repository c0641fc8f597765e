//! The server as a tower service: no sockets, no tasks, and tokio's clock.

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
/// A request takes effect while its future is polled. If the future is dropped earlier, the request has no effect,
/// as when a client hangs up. The service is always ready. When a fault drops the connection, the future fails with
/// [`ConnectionDropped`](crate::ConnectionDropped).
#[derive(Clone, Debug)]
pub struct ApiService {
    shared: Arc<Shared>,
    user: Option<Arc<str>>,
}

/// The future of a response.
type ApiFuture = Pin<Box<dyn Future<Output = Result<Response<ApiBody>, BoxError>> + Send>>;

impl ApiServer {
    /// Returns the server as a tower service, without sockets. `kube::Client::new` accepts it.
    #[must_use]
    pub fn service(&self) -> ApiService {
        ApiService { shared: Arc::clone(&self.shared), user: None }
    }
}

// === impl ApiService ===

impl ApiService {
    /// Sets the user of requests without a bearer token. Without this it is `anonymous`.
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
