//! The connections of a kube client behind the gate, and the wrapper around an existing client.

use crate::{
    api::without_secrets,
    leadership::{Lapse, Leadership},
};
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
/// and does not send the write. It checks the term after each step too: if the process froze within the step, the
/// connection is closed right behind what was sent, and the API server gives that up.
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
            let stepped = !this.lapse.occurred();
            if stepped && this.inner.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            // If the process froze within this step, the step may have sent a write late. The API server gives up a
            // write whose connection ends.
            if !stepped || this.lapse.occurred() {
                tracing::debug!("connection closed: a term was lost");
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
        Box::pin(async move { client.send(request).await.map_err(without_secrets) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leadership::{Clock, Grantor, Moment, Term};
    use std::{
        future::{pending, poll_fn},
        pin::pin,
        sync::{
            Arc,
            atomic::{AtomicU64, Ordering},
        },
        task::Waker,
    };

    const DEADLINE: u64 = 1_000;

    /// No task learns that it has moved on.
    #[derive(Debug, Default)]
    struct Silent(AtomicU64);

    impl Clock for Silent {
        fn now(&self) -> Moment {
            Moment::from_nanos(self.0.load(Ordering::SeqCst))
        }
    }

    fn closes_after<F: Future<Output = ()>>(clock: &Arc<Silent>, step: F) -> bool {
        let grantor = Grantor::with_clock(clock.clone());
        let _grant = grantor.grant(Term::new("uid", 1), Moment::from_nanos(DEADLINE)).expect("in time");
        let lapse = Lapse::new(&grantor.leadership());
        let connection = pin!(Connection { inner: step, ended: lapse.term_ended(), lapse });
        connection.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// The process freezes between the look at the deadline and the kernel, so a write goes out late. The server gives
    /// up a write whose connection ends.
    #[test]
    fn s2_step_that_outlives_its_term_ends_the_connection() {
        let clock = Arc::new(Silent::default());
        let frozen = poll_fn(|_| {
            clock.0.store(DEADLINE, Ordering::SeqCst);
            Poll::Pending
        });
        assert!(closes_after(&clock, frozen));
        assert!(!closes_after(&Arc::default(), pending()), "a step in time");
    }
}
