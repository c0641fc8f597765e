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
    HeaderMap, Response, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use http_body::{Body, Frame, SizeHint};
use kube_leader_gate::Candidate;
use std::{
    future::pending,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tower::BoxError;

/// Completes when this replica has begun to lead.
pub(crate) type Gain = BoxFuture<'static, ()>;

/// Counts the gains of this replica. Dropping this ends the count.
pub(crate) struct Gains {
    count: watch::Receiver<u64>,
    _task: AbortOnDropHandle<()>,
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
    /// Begins to count, in a task of its own.
    pub(crate) fn of(candidate: &Candidate) -> Self {
        let (gained, count) = watch::channel(0);
        let mut gains = candidate.gains();
        let task = async move {
            while gains.next().await.is_some() {
                gained.send_modify(|count| *count += 1);
            }
        };
        Self { count, _task: AbortOnDropHandle::new(tokio::spawn(task)) }
    }

    /// Completes at the next gain.
    pub(crate) fn next(&self) -> Gain {
        let mut count = self.count.clone();
        count.mark_unchanged();
        Box::pin(async move {
            if count.changed().await.is_err() {
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
        let frame = ready!(inner.as_mut().poll_frame(cx));
        Poll::Ready(frame.map(|frame| {
            Ok(frame?.map_data(|mut data| {
                let is_due = watch.state == State::Due;
                data.truncate(watch.frames.read(&data, is_due));
                data
            }))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.watch.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.watch.is_none() { self.inner.size_hint() } else { SizeHint::default() }
    }
}
