//! A kube client as a tower service.

use http::{Request, Response};
use kube_leader_gate::{
    extension::without_secrets,
    kube_client::{Client, Error, client::Body},
};
use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tower_service::Service;

/// It uses [`Client::send`], which waits for the client's own readiness.
#[derive(Clone)]
pub(super) struct GatedClient(pub(super) Client);

impl Service<Request<Body>> for GatedClient {
    type Response = Response<Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move { client.send(request).await.map_err(without_secrets) })
    }
}
