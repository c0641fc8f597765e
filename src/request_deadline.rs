//! Bounded server time: a write carries what is left of its validity, and the API server gives it up by itself.
//!
//! The gate closes a connection when it cuts a write off, and an API server that sees this gives the write up. If the
//! process is frozen, or cut off from the network, the server sees nothing. It then works on the write for as long as
//! its own limit allows: 60 s by default, behind a slow admission webhook for example. By then another replica may
//! lead.
//!
//! [`RequestDeadlineLayer`] adds the parameter `timeout` to the query of each write: the time until the validity deadline.
//! The API server makes it its own deadline for the request. It then answers 504 `Timeout`, and commits nothing
//! after that.
//!
//! - The parameter never raises a limit. The server takes the smaller one of it and of its own. If the caller has
//!   set a shorter `timeout`, in one unit and without escapes (`timeout=5s`), that one stays.
//! - It is the same for every verb that changes a resource, also of an aggregated API: the API server that receives the
//!   request keeps the time. It is not added to reads, watches, logs, `exec`, `attach`, `portforward` or `proxy`, nor to
//!   a path that is not a resource: a backend could read it. Nor is it added to what the gate's policy exempts: a
//!   follower sends that too, and has no deadline.
//! - The server counts from the arrival of the request. Time on the way comes on top, so this layer does not stop a write
//!   that the network has delayed. A [fence](https://docs.rs/kube-leader-gate-fence) does, if the write arrives after the next leader's
//!   acquisition.
//! - A renewal while the server works on the write does not raise the limit. So no write can take longer than the
//!   renew deadline. With [`LeaseTiming::fast`](crate::LeaseTiming::fast) a write has 8 to 10 s, which is less than a
//!   very slow admission webhook may take.
//! - After a 504 the outcome of an admitted write is unknown, whatever has sent it. It counts as a write without an
//!   answer ([rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order)).
//!
//! [`Election::client`](crate::Election::client) has this layer, unless
//! [`ElectionBuilder::request_deadline`](crate::election::ElectionBuilder::request_deadline) says otherwise. In a stack of your
//! own, put it below the gate:
//!
//! ```
//! use kube_client::{Client, Config, Error, client::ClientBuilder};
//! use kube_leader_gate::{Election, request_deadline::RequestDeadlineLayer};
//!
//! fn client(election: &Election, config: Config) -> Result<Client, Error> {
//!     let kube = ClientBuilder::try_from((config, election.connections()))?;
//!     let bounded = RequestDeadlineLayer::new(election.leadership());
//!     Ok(kube.with_layer(&bounded).with_layer(&election.layer()).build())
//! }
//! ```

use crate::{
    gate::Passed,
    leadership::Leadership,
    request::{RequestInfo, has_no_room},
};
use http::{Request, Response, StatusCode, Uri, uri::PathAndQuery};
use pin_project_lite::pin_project;
use std::{
    future::Future,
    pin::Pin,
    sync::atomic::Ordering::Relaxed,
    task::{Context, Poll, ready},
    time::Duration,
};
use tower_layer::Layer;
use tower_service::Service;

/// Puts a [`RequestDeadline`] in front of a service. The [module](self) describes it.
#[derive(Clone, Debug)]
pub struct RequestDeadlineLayer {
    leadership: Leadership,
}

/// A service that limits how long the API server works on a write. The [module](self) describes it.
#[derive(Clone, Debug)]
pub struct RequestDeadline<S> {
    inner: S,
    leadership: Leadership,
}

// === impl RequestDeadlineLayer ===

impl RequestDeadlineLayer {
    /// Limits writes to the validity deadline of `leadership`.
    #[must_use]
    pub fn new(leadership: Leadership) -> Self {
        leadership.marks().store(true, Relaxed);
        Self { leadership }
    }
}

impl<S> Layer<S> for RequestDeadlineLayer {
    type Service = RequestDeadline<S>;

    fn layer(&self, inner: S) -> Self::Service {
        RequestDeadline { inner, leadership: self.leadership.clone() }
    }
}

// === impl RequestDeadline ===

impl<S, B, R> Service<Request<B>> for RequestDeadline<S>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let asked = RequestInfo::of(&request);
        // A follower too may send what the policy exempts. No deadline holds for it.
        if asked.is_read() || request.extensions().get() == Some(&Passed::Exempted) {
            return ResponseFuture { inner: self.inner.call(request), writes: None };
        }
        if let Some(deadline) = self.leadership.deadline()
            && asked.effect().1
        {
            let left = deadline.saturating_since(self.leadership.now());
            if let Some(uri) = within(request.uri(), left) {
                *request.uri_mut() = uri;
            }
        }
        ResponseFuture { inner: self.inner.call(request), writes: Some(self.leadership.clone()) }
    }
}

pin_project! {
    /// The future of [`RequestDeadline`]. Dropping it drops the request.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F> {
        #[pin]
        inner: F,
        writes: Option<Leadership>,
    }
}

impl<F, R, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let outcome = ready!(this.inner.poll(cx));
        // A 504 says that the time was over, not that nothing was done (rule S4).
        let in_doubt =
            outcome.as_ref().is_ok_and(|response| response.status() == StatusCode::GATEWAY_TIMEOUT);
        if let Some(leadership) = this.writes.as_ref().filter(|_| in_doubt) {
            leadership.note_unanswered();
        }
        Poll::Ready(outcome)
    }
}

/// The server takes no smaller unit.
const LEAST: Duration = Duration::from_millis(1);

/// The longest path with a query that every version of the crate `http` takes, in bytes.
const LONGEST: usize = 65_534;

/// `uri` with a `timeout` of `left`. None if the caller's own is shorter, or if the URI would be too long or have too many
/// pairs.
///
/// The server reads the first `timeout` of a query, so this one goes to the front.
fn within(uri: &Uri, left: Duration) -> Option<Uri> {
    let query = uri.query().unwrap_or_default();
    if callers(query).is_some_and(|callers| callers <= left) {
        return None;
    }
    let left = left.max(LEAST).as_millis();
    // kube puts one separator in front of the first pair.
    let rest = query.strip_prefix('&').unwrap_or(query);
    let separator = if rest.is_empty() { "" } else { "&" };
    let path_and_query = format!("{}?timeout={left}ms{separator}{rest}", uri.path());
    if path_and_query.len() > LONGEST || has_no_room(rest) {
        return None;
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path_and_query).ok()?);
    Uri::from_parts(parts).ok()
}

/// The caller's own limit, if the server surely reads the same: it is one whole number with a unit, and no pair before it
/// has an escape or a semicolon. Zero means none.
fn callers(query: &str) -> Option<Duration> {
    let plain = query.split('&').take_while(|pair| !pair.contains(['%', ';', '+']));
    let mut pairs = plain.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let (_, text) = pairs.find(|(key, _)| *key == "timeout")?;
    let (number, unit) = text.split_at(text.find(|char: char| !char.is_ascii_digit())?);
    let number = number.parse().ok().filter(|number| *number > 0)?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        _ => None,
    }
}

#[path = "request_deadline_tests.rs"]
#[cfg(test)]
mod request_deadline_tests;
