//! The connections of a kube client behind the gate, and the wrapper around an existing client.

use crate::leadership::{Lapse, Leadership};
use futures_util::future::BoxFuture;
use http::{Request, Response};
use hyper::rt::Executor;
use kube_client::{Client, Error, client::Body};
use pin_project_lite::pin_project;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::sync::futures::OwnedNotified;
use tower_service::Service;

/// Runs the connections of a client, and ends them when a term is lost.
///
/// The gate hands an admitted write to hyper, and hyper hands it to the task of a connection. If the process freezes
/// between the two, that task may be the first to run when the process wakes. So each connection task checks the term
/// before each step ([rule S2](crate::guide::guarantees#s2-a-lost-term-cuts-off-its-writes)). After a loss it ends
/// and does not send the write.
///
/// A lost term therefore ends all connections of the client: a running read fails, and a watch has to begin again. A
/// release in good order ends no connection, since all writes have finished before it.
///
/// [`Election::connections`](super::Election::connections) returns it, for a kube client:
/// `ClientBuilder::try_from((config, connections))`. It spawns on the tokio runtime of the task that sends. Outside a
/// runtime it panics, as kube's own executor does.
#[derive(Clone, Debug)]
pub struct Connections {
    pub(super) leadership: Leadership,
}

/// A kube client as a tower service. It uses [`Client::send`].
#[derive(Clone)]
pub(super) struct WrappedClient(pub(super) Client);

// === impl Connections ===

impl<F> Executor<F> for Connections
where
    F: Future<Output = ()> + Send + 'static,
{
    // A task lives as long as its connection. hyper closes the connection with the client.
    fn execute(&self, connection: F) {
        let lapse = Lapse::new(&self.leadership);
        tokio::spawn(Connection { inner: connection, ended: lapse.term_ended(), lapse });
    }
}

pin_project! {
    struct Connection<F> {
        #[pin]
        inner: F,
        #[pin]
        ended: OwnedNotified,
        lapse: Lapse,
    }
}

impl<F: Future<Output = ()>> Future for Connection<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        loop {
            if this.lapse.occurred() {
                tracing::debug!("connection closed: a term was lost");
                return Poll::Ready(());
            }
            if this.inner.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            ready!(this.ended.as_mut().poll(cx));
            this.ended.set(this.lapse.term_ended());
        }
    }
}

// === impl WrappedClient ===

impl Service<Request<Body>> for WrappedClient {
    type Response = Response<Body>;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Response<Body>, Error>>;

    // `send` waits for the client's own readiness.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move { client.send(request).await })
    }
}
