//! Lets the program list again when this replica begins to lead.
//!
//! A controller puts an object whose write was refused into a backoff, which lasts about as long as the replica followed. So at
//! a gain each open watch of the program gets the event that the API server sends when the version of a watch has expired. Then
//! an informer lists again, and hands each object to its handlers. A watch gets this event once, between two other events, and
//! ends after it.

mod frames;

use self::frames::Frames;
use crate::upstream::Streamed;
use bytes::Bytes;
use futures_util::{StreamExt, future::BoxFuture};
use http::{
    HeaderMap, Response, StatusCode, Uri,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use http_body::{Body, Frame, SizeHint};
use kube_leader_gate::Candidate;
use std::{
    future::{pending, ready},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{sync::watch, time::Instant};
use tokio_util::task::AbortOnDropHandle;
use tower::BoxError;

/// Completes when this replica has begun to lead.
pub(crate) type Gain = BoxFuture<'static, ()>;

/// A program begins a broken watch anew within this time.
const RECENT: Duration = Duration::from_secs(60);

/// Follows the gains of this replica. Dropping this ends it.
pub(crate) struct Gains {
    last: watch::Receiver<Option<Gained>>,
    _task: AbortOnDropHandle<()>,
}

/// The last gain.
#[derive(Clone, Copy)]
struct Gained {
    at: Instant,
    /// The version of the lease in which this replica has taken it. The versions of all objects in one etcd can be compared.
    version: u64,
}

/// The body of an answer. If it is a watch, it ends after a gain.
pub(crate) struct Relisted {
    inner: Streamed,
    watch: Option<Watch>,
}

/// A watch that has not got its event yet.
struct Watch {
    frames: Frames,
    gain: Gain,
    state: State,
}

#[derive(PartialEq, Eq)]
enum State {
    Waits,
    /// This replica leads now. The event comes as soon as no other event is under way.
    Due,
    Told,
}

// === impl Gains ===

impl Gains {
    /// Begins to follow them, in a task of its own.
    pub(crate) fn of(candidate: &Candidate) -> Self {
        let (gained, last) = watch::channel(None);
        let (candidate, mut gains) = (candidate.clone(), candidate.gains());
        let task = async move {
            while gains.next().await.is_some() {
                let version = candidate.term().and_then(|term| term.fencing_token()).unwrap_or(0);
                gained.send_replace(Some(Gained { at: Instant::now(), version }));
            }
        };
        Self { last, _task: AbortOnDropHandle::new(tokio::spawn(task)) }
    }

    /// Completes at the next gain. It completes at once if this watch begins soon after a gain, from a version before it: then the
    /// program has listed before the gain, and its watch was broken since.
    pub(crate) fn next(&self, watch: &Uri) -> Gain {
        let mut last = self.last.clone();
        let recent = last.borrow_and_update().filter(|gained| gained.at.elapsed() < RECENT);
        let query = watch.query().unwrap_or_default();
        let version =
            query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion=")?.parse::<u64>().ok());
        if version.zip(recent).is_some_and(|(from, gained)| 0 < from && from < gained.version) {
            return Box::pin(ready(()));
        }
        Box::pin(async move {
            if last.changed().await.is_err() {
                pending::<()>().await; // the election has ended
            }
        })
    }
}

/// The answer to a watch. It ends after this gain, if its events are in a known encoding.
pub(crate) fn end_watch(answer: Response<Streamed>, gain: Gain) -> Response<Relisted> {
    let frames = encoding(answer.status(), answer.headers());
    let watch = frames.map(|frames| Watch { frames, gain, state: State::Waits });
    answer.map(|inner| Relisted { inner, watch })
}

/// How the events of a watch are written. None if that is not known.
fn encoding(status: StatusCode, headers: &HeaderMap) -> Option<Frames> {
    if status != StatusCode::OK || headers.contains_key(CONTENT_ENCODING) {
        return None;
    }
    Frames::of(headers.get(CONTENT_TYPE)?.to_str().ok()?)
}

// === impl Relisted ===

impl From<Streamed> for Relisted {
    fn from(inner: Streamed) -> Self {
        Self { inner, watch: None }
    }
}

impl Body for Relisted {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self { inner, watch } = self.get_mut();
        let mut inner = Pin::new(inner);
        let Some(watch) = watch else { return inner.as_mut().poll_frame(cx) };
        if watch.state == State::Waits && watch.gain.as_mut().poll(cx).is_ready() {
            watch.state = State::Due;
        }
        if watch.state == State::Due && watch.frames.is_between_events() {
            watch.state = State::Told;
            return Poll::Ready(Some(Ok(Frame::data(watch.frames.expired()))));
        }
        if watch.state == State::Told {
            return Poll::Ready(None);
        }
        inner.as_mut().poll_frame(cx).map_ok(|frame| {
            frame.map_data(|mut data| {
                let is_due = watch.state == State::Due;
                data.truncate(watch.frames.read(&data, is_due));
                data
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.watch.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.watch.is_none() { self.inner.size_hint() } else { SizeHint::default() }
    }
}
