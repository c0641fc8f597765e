//! A kube client as a tower service.

use futures_util::future::BoxFuture;
use http::{Request, Response};
use kube_client::{Client, Error, client::Body};
use std::task::{Context, Poll};
use tower_service::Service;

/// [`Client`] is no tower service itself; [`Client::send`] is its door.
#[derive(Clone)]
pub(super) struct WrappedClient(pub(super) Client);

impl Service<Request<Body>> for WrappedClient {
    type Response = Response<Body>;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Response<Body>, Error>>;

    // The client's own readiness is waited for in `send`.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move { client.send(request).await })
    }
}
