//! A stage for the gate: a clock, a service that counts its calls, and a mock that reads requests.

use http::{Request, Response};
use kube_leader_gate::{
    ErrLeadershipLost, ErrNotLeader, Leadership, WriteGate, WriteGateLayer,
    leadership::{Grant, Grantor, Loss, Term},
    testing::ManualClock,
};
use std::{
    convert::Infallible,
    error::Error,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};
use tower::{
    Service,
    layer::util::Stack,
    util::{MapRequest, MapRequestLayer, MapResponse, MapResponseLayer},
};
use tower_test::mock::{Handle, Mock, Spawn};

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;
pub(crate) type Body = &'static str;

pub(crate) const PATH: &str = "/api/v1/namespaces/default/configmaps";
/// [`describe`]'s text for [`write`].
pub(crate) const WRITE: &str = "POST /api/v1/namespaces/default/configmaps";
pub(crate) const READ: &str = "GET /api/v1/namespaces/default/configmaps";
pub(crate) const TERM: Duration = Duration::from_secs(107);
/// The last instant of a [`TERM`]: a deadline is kept in even nanoseconds.
pub(crate) const ALMOST: Duration = Duration::from_nanos(106_999_999_998);
pub(crate) const STEP: Duration = Duration::from_nanos(2);

pub(crate) fn write() -> Request<Body> {
    Request::post(PATH).body("{}").unwrap()
}

pub(crate) fn read() -> Request<Body> {
    Request::get(PATH).body("").unwrap()
}

/// `http::Request` cannot be compared; this can.
#[expect(clippy::needless_pass_by_value, reason = "it stands for a service, which takes requests by value")]
pub(crate) fn describe(request: Request<Body>) -> String {
    format!("{} {}", request.method(), request.uri())
}

pub(crate) type Describe = fn(Request<Body>) -> String;
pub(crate) type Respond = fn(Body) -> Response<Body>;
pub(crate) type Described = MapResponse<MapRequest<Mock<String, Body>, Describe>, Respond>;

/// Between the gate and a mock: a request is told by its text, and so is a response.
pub(crate) fn described() -> Stack<MapRequestLayer<Describe>, MapResponseLayer<Respond>> {
    Stack::new(MapRequestLayer::new(describe), MapResponseLayer::new(Response::new))
}

/// The owner and a reader of a leadership, on a clock that stands still.
pub(crate) fn stage() -> (Grantor, Leadership, ManualClock) {
    let clock = ManualClock::new();
    let grantor = Grantor::with_clock(Arc::new(clock.clone()));
    let leadership = grantor.leadership();
    (grantor, leadership, clock)
}

/// Leadership for [`TERM`] from now on.
pub(crate) fn lead(grantor: &Grantor) -> Grant {
    lead_in(grantor, 1)
}

pub(crate) fn lead_in(grantor: &Grantor, transitions: u64) -> Grant {
    let deadline = grantor.now().saturating_add(TERM);
    grantor.grant(Term::new("uid", transitions), deadline).expect("a deadline to come")
}

/// The gate alone over a mock.
pub(crate) fn gate(leadership: &Leadership) -> (Spawn<WriteGate<Described>>, Handle<String, Body>) {
    let layer =
        tower::ServiceBuilder::new().layer(WriteGateLayer::new(leadership.clone())).layer(described());
    tower_test::mock::spawn_layer(layer)
}

#[track_caller]
pub(crate) fn assert_not_leader(error: &BoxError) {
    assert!(error.is::<ErrNotLeader>(), "{error:?}");
}

#[track_caller]
pub(crate) fn assert_lost(error: &BoxError, loss: Loss) {
    match error.downcast_ref::<ErrLeadershipLost>() {
        Some(error) => assert_eq!(error.loss(), loss),
        None => panic!("not a cut-off write: {error:?}"),
    }
}

/// A service that hangs until it is told to answer, and counts its calls.
#[derive(Clone, Default)]
pub(crate) struct Probe(Arc<Counts>);

#[derive(Default)]
struct Counts {
    readies: AtomicUsize,
    calls: AtomicUsize,
    polls: AtomicUsize,
    drops: AtomicUsize,
    answer: Mutex<Answer>,
}

#[derive(Default)]
struct Answer {
    given: bool,
    waker: Option<Waker>,
}

/// What [`Probe`] answers with.
pub(crate) struct Probing(Probe);

impl Probe {
    pub(crate) fn readies(&self) -> usize {
        self.0.readies.load(SeqCst)
    }

    pub(crate) fn calls(&self) -> usize {
        self.0.calls.load(SeqCst)
    }

    /// How often a future was polled: each poll may send.
    pub(crate) fn polls(&self) -> usize {
        self.0.polls.load(SeqCst)
    }

    /// How many futures have been dropped.
    pub(crate) fn drops(&self) -> usize {
        self.0.drops.load(SeqCst)
    }

    /// Answers the open calls, and all later ones.
    pub(crate) fn answer(&self) {
        let mut answer = self.0.answer.lock().unwrap();
        answer.given = true;
        if let Some(waker) = answer.waker.take() {
            waker.wake();
        }
    }
}

impl<R> Service<R> for Probe {
    type Response = Response<&'static str>;
    type Error = Infallible;
    type Future = Probing;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.readies.fetch_add(1, SeqCst);
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: R) -> Probing {
        self.0.calls.fetch_add(1, SeqCst);
        Probing(self.clone())
    }
}

impl Future for Probing {
    type Output = Result<Response<&'static str>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let counts = &self.0.0;
        counts.polls.fetch_add(1, SeqCst);
        let mut answer = counts.answer.lock().unwrap();
        if answer.given {
            return Poll::Ready(Ok(Response::new("done")));
        }
        answer.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Probing {
    fn drop(&mut self) {
        self.0.0.drops.fetch_add(1, SeqCst);
    }
}
