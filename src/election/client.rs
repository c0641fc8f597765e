//! What a kube client behind the gate is made of: its connections, the wrapper around an existing client, and a retry
//! policy that leaves writes alone.

use super::candidate::Profile;
use crate::{
    api::without_secrets,
    leadership::{Leadership, TermLoss},
    request::{RequestInfo, Verb},
};
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode};
use hyper::rt::Executor;
use kube_client::{Client, Error, client::Body};
use pin_project_lite::pin_project;
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{sync::futures::OwnedNotified, time::timeout};
use tower::{BoxError, retry::Policy};
use tower_service::Service;

/// Runs the connections of a client, and ends them when a term is lost.
///
/// The gate hands an admitted write to hyper, and hyper hands it to the task of a connection. If the process freezes
/// between these two steps, that task may be the first to run when the process wakes. So each connection task checks
/// the term before and after each step ([rule S2](crate::guide::guarantees#s2-a-lost-term-cuts-off-its-writes)). After
/// a loss, the task closes the connection: it sends nothing more, and the API server gives up the request that it has
/// just received.
///
/// This ends reads too: a read that is under way fails, and a watch has to begin again. A release in good order ends no
/// connection, because all writes have finished before the release.
///
/// [`Election::connections`](super::Election::connections) returns it, for a kube client:
/// `ClientBuilder::try_from((config, connections))`. It runs each connection in a new task, on the tokio runtime of the
/// task that sends a request. Outside a runtime, it panics, as kube's own executor does.
#[derive(Clone, Debug)]
pub struct Connections {
    pub(super) leadership: Leadership,
}

/// A kube client as a tower service. It uses [`Client::send`].
#[derive(Clone)]
pub(super) struct WrappedClient(pub(super) Client);

/// How long the answer to a read may take to begin. The API server itself gives up a read after 60 s by default.
const ANSWER_BEGINS: Duration = Duration::from_secs(90);

/// Looks at each request and each answer of the workload's client.
///
/// It gives up a read whose answer does not begin. kube's connector does not check whether a silent peer is still
/// there. So on a dead connection, a read would wait for a quarter of an hour or for ever. A caller can safely repeat a
/// read.
///
/// It notes whether the API server knows the workload's credentials, for a liveness probe.
#[derive(Clone)]
pub(super) struct Attended<S> {
    pub(super) inner: S,
    pub(super) profile: Arc<Profile>,
    pub(super) leadership: Leadership,
}

/// A retry policy for reads. It passes a read to the `P` that it wraps, and never repeats any other request.
///
/// [`Election::client`](super::Election::client) uses it around kube's own policy. Use it in [a stack of your
/// own](crate::guide::stacking) around any policy:
///
/// ```
/// use kube_client::client::retry::RetryPolicy;
/// use kube_leader_gate::election::ReadsOnly;
/// use tower::retry::RetryLayer;
///
/// let layer = RetryLayer::new(ReadsOnly::new(RetryPolicy::default()));
/// ```
///
/// The gate and this policy agree on what a read is.
#[derive(Clone, Debug)]
pub struct ReadsOnly<P> {
    policy: P,
}

// === impl Connections ===

impl<F> Executor<F> for Connections
where
    F: Future<Output = ()> + Send + 'static,
{
    // A task lives as long as its connection. hyper closes the connection when the client is dropped.
    fn execute(&self, connection: F) {
        let term_loss = self.leadership.term_loss();
        tokio::spawn(Connection { inner: connection, ended: term_loss.term_ended(), term_loss });
    }
}

pin_project! {
    struct Connection<F> {
        #[pin]
        inner: F,
        #[pin]
        ended: OwnedNotified,
        term_loss: TermLoss,
    }
}

impl<F: Future<Output = ()>> Future for Connection<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        loop {
            let stepped = !this.term_loss.occurred();
            if stepped && this.inner.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            // If the process froze within this step, the step may have sent a write late. The API server gives up a
            // write whose connection ends.
            if !stepped || this.term_loss.occurred() {
                tracing::debug!("connection closed: a term was lost");
                return Poll::Ready(());
            }
            ready!(this.ended.as_mut().poll(cx));
            this.ended.set(this.term_loss.term_ended());
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

// === impl Attended ===

impl<S, B, C> Service<Request<B>> for Attended<S>
where
    S: Service<Request<B>, Response = Response<C>, Error: Into<BoxError>, Future: Send + 'static>,
{
    type Response = Response<C>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<C>, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let asked = RequestInfo::of(&request);
        let is_of_another = asked.subresource() == "proxy";
        // If a request follows a log, or goes to a program behind the API server's proxy, the answer may begin much
        // later.
        let is_bounded =
            matches!(asked.verb(), Verb::Get | Verb::List) && asked.subresource() != "log" && !is_of_another;
        let answer = self.inner.call(request);
        let (profile, leadership) = (self.profile.clone(), self.leadership.clone());
        Box::pin(async move {
            let answer = if is_bounded {
                let late = |_| format!("the API server has not begun to answer within {ANSWER_BEGINS:?}");
                timeout(ANSWER_BEGINS, answer).await.map_err(late)?
            } else {
                answer.await
            };
            let answer = answer.map_err(Into::into)?;
            if !is_of_another {
                let is_known = answer.status() != StatusCode::UNAUTHORIZED;
                profile.liveness.note_credentials(is_known, || leadership.now());
            }
            Ok(answer)
        })
    }
}

// === impl ReadsOnly ===

impl<P> ReadsOnly<P> {
    /// Applies `policy` to reads.
    pub const fn new(policy: P) -> Self {
        Self { policy }
    }
}

impl<B, Res, E, P> Policy<Request<B>, Res, E> for ReadsOnly<P>
where
    P: Policy<Request<B>, Res, E>,
{
    type Future = P::Future;

    fn retry(&mut self, request: &mut Request<B>, result: &mut Result<Res, E>) -> Option<Self::Future> {
        self.policy.retry(request, result)
    }

    // `Retry` repeats a request only if it has a copy.
    fn clone_request(&mut self, request: &Request<B>) -> Option<Request<B>> {
        if RequestInfo::of(request).is_read() { self.policy.clone_request(request) } else { None }
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

    /// A clock that wakes no task when its time moves on.
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
        let term_loss = grantor.leadership().term_loss();
        let connection = pin!(Connection { inner: step, ended: term_loss.term_ended(), term_loss });
        connection.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// The process checks the deadline, and freezes before it hands a write to the kernel, so the write goes out late.
    /// The API server gives up a write whose connection ends.
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
