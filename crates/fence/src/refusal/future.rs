//! The response future: it reads the answer of a refused write.

use super::body::ResponseBody;
use crate::{counts::Counts, denial::Denial, error::ErrFenced};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body::{Body, Frame};
use kube_leader_gate::request::{RequestInfo, Verb};
use pin_project_lite::pin_project;
use std::{
    error::Error,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Sleep, sleep};

/// How many bytes of an answer are read. The API server allows a policy a message of 5 KiB.
const MOST: usize = 16 * 1024;
/// How long they may take to come. The API server sends them with the head.
const PATIENCE: Duration = Duration::from_secs(5);

/// The subresources that run something in a pod.
const CONNECTIONS: [&str; 3] = ["exec", "attach", "portforward"];

type Answer<R> = Response<ResponseBody<R>>;

#[derive(Debug)]
pub(super) struct Settings {
    pub(super) denial: Denial,
    pub(super) counts: Counts,
}

pin_project! {
    /// The future of [`Refusal`](super::Refusal). Dropping it drops the request.
    ///
    /// # Panics
    /// If it is polled after it has completed.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F, R: Body> {
        #[pin]
        inner: F,
        // None if the fence's refusal of this request is no certain answer.
        asked: Option<Asked>,
        settings: Arc<Settings>,
        // In a box, since few answers have one.
        reading: Option<Box<Reading<R>>>,
    }
}

/// What was asked. It is parsed only if the answer may be a refusal, since most requests have another answer.
pub(super) struct Asked {
    method: Method,
    uri: Uri,
    upgrade: bool,
}

/// An answer to a write that may be a refusal of the fence.
struct Reading<R: Body> {
    verb: Verb,
    answer: Answer<R>,
    /// How many more bytes are read.
    room: usize,
    late: Pin<Box<Sleep>>,
}

impl<F, R: Body> ResponseFuture<F, R> {
    pub(super) const fn new(inner: F, asked: Option<Asked>, settings: Arc<Settings>) -> Self {
        Self { inner, asked, settings, reading: None }
    }
}

impl<F, R, E> Future for ResponseFuture<F, R>
where
    F: Future<Output = Result<Response<R>, E>>,
    E: Into<Box<dyn Error + Send + Sync>>,
    R: Body<Data = Bytes> + Unpin,
{
    type Output = Result<Answer<R>, Box<dyn Error + Send + Sync>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if this.reading.is_none() {
            let answer = ready!(this.inner.poll(cx)).map_err(Into::into)?.map(ResponseBody::new);
            if answer.status() != StatusCode::FORBIDDEN {
                return Poll::Ready(Ok(answer));
            }
            let verb = this.asked.as_ref().and_then(Asked::fenced_as);
            let Some(verb) = verb else { return Poll::Ready(Ok(answer)) };
            let late = Box::pin(sleep(PATIENCE));
            *this.reading = Some(Box::new(Reading { verb, answer, room: MOST, late }));
        }
        let complete = match this.reading {
            Some(reading) => ready!(reading.poll(cx)),
            None => false,
        };
        let reading = this.reading.take().expect("ResponseFuture polled after completion");
        Poll::Ready(reading.judge(complete, this.settings))
    }
}

// === impl Asked ===

impl Asked {
    /// None if the request cannot be a write: only these paths make one of a `GET`.
    pub(super) fn of<B>(request: &Request<B>) -> Option<Self> {
        let (method, path) = (request.method(), request.uri().path());
        let writes = !method.is_safe() || CONNECTIONS.iter().any(|end| path.ends_with(end));
        writes.then(|| Self {
            method: method.clone(),
            uri: request.uri().clone(),
            upgrade: RequestInfo::of(request).is_upgrade(),
        })
    }

    /// The verb of a write that the API server carries out as a whole, or not at all. The answer to any other request tells
    /// too little.
    fn fenced_as(&self) -> Option<Verb> {
        let request = RequestInfo::from_parts(&self.method, &self.uri, self.upgrade);
        let verb = request.verb();
        let whole = match verb {
            Verb::Create | Verb::Update | Verb::Patch | Verb::Delete => !request.resource().is_empty(),
            Verb::Connect => CONNECTIONS.contains(&request.subresource()),
            _ => false,
        };
        whole.then_some(verb)
    }
}

// === impl Reading ===

impl<R: Body<Data = Bytes> + Unpin> Reading<R> {
    /// Reads to the end, to a limit, or to an error. Returns whether this is all.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let body = self.answer.body_mut();
        loop {
            let Poll::Ready(frame) = body.poll_rest(cx) else {
                return self.late.as_mut().poll(cx).map(|()| false);
            };
            let Some(frame) = frame else { return Poll::Ready(true) };
            // Empty frames count too, so that they have a bound.
            let length =
                frame.as_ref().ok().map(|frame| frame.data_ref().map_or(1, |data| data.len().max(1)));
            body.read.push_back(frame);
            match length.and_then(|length| self.room.checked_sub(length)) {
                Some(room) => self.room = room,
                None => return Poll::Ready(false),
            }
        }
    }

    fn judge(self, complete: bool, settings: &Settings) -> Result<Answer<R>, Box<dyn Error + Send + Sync>> {
        let Self { verb, answer, .. } = self;
        let text = || answer.body().read.iter().flatten().filter_map(Frame::data_ref).flatten().copied();
        let message = complete.then(|| settings.denial.in_answer(&text().collect::<Vec<_>>()));
        let Some(message) = message.flatten() else { return Ok(answer) };
        let error = ErrFenced::new(verb, &message);
        tracing::warn!(%verb, "the fence refused an admitted write: {error}");
        settings.counts.add(verb);
        Err(error.into())
    }
}

impl<F, R: Body> std::fmt::Debug for ResponseFuture<F, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseFuture").field("reading", &self.reading.is_some()).finish_non_exhaustive()
    }
}
