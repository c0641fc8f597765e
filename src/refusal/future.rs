//! The response future: it reads the answer of a refused write.

use super::{body::ResponseBody, settings::Asked};
use crate::gate::ErrNotLeader;
use bytes::Bytes;
use http::{Response, StatusCode, response};
use http_body::{Body, Frame};
use pin_project_lite::pin_project;
use std::{
    collections::VecDeque,
    error::Error,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Sleep, sleep};

/// How many bytes of an answer are read. The API server allows a policy a message of 5 KiB.
const MOST: usize = 16 * 1024;
/// How long they may take to come. The API server sends them with the head.
const PATIENCE: Duration = Duration::from_secs(5);

type Answer<R> = Response<ResponseBody<R>>;

pin_project! {
    /// The future of [`Refusal`](super::Refusal). Dropping it drops the request.
    ///
    /// # Panics
    /// If it is polled after it has completed.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F, R: Body> {
        #[pin]
        inner: F,
        asked: Option<Asked>,
        reading: Option<Reading<R>>,
    }
}

/// An answer to a write that may be a refusal of the fence.
struct Reading<R: Body> {
    asked: Asked,
    head: response::Parts,
    rest: Pin<Box<R>>,
    read: VecDeque<Frame<R::Data>>,
    text: Vec<u8>,
    late: Pin<Box<Sleep>>,
}

impl<F, R: Body> ResponseFuture<F, R> {
    pub(super) const fn new(inner: F, asked: Option<Asked>) -> Self {
        Self { inner, asked, reading: None }
    }
}

impl<F, R, E> Future for ResponseFuture<F, R>
where
    F: Future<Output = Result<Response<R>, E>>,
    E: Into<Box<dyn Error + Send + Sync>>,
    R: Body<Data = Bytes>,
{
    type Output = Result<Answer<R>, Box<dyn Error + Send + Sync>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if this.reading.is_none() {
            let answer = ready!(this.inner.poll(cx)).map_err(Into::into)?;
            let refused = answer.status() == StatusCode::FORBIDDEN;
            let Some(asked) = this.asked.take().filter(|_| refused) else {
                return Poll::Ready(Ok(answer.map(ResponseBody::untouched)));
            };
            *this.reading = Some(Reading::new(asked, answer));
        }
        let read = match this.reading {
            Some(reading) => ready!(reading.poll(cx)),
            None => Ok(false),
        };
        let reading = this.reading.take().expect("ResponseFuture polled after completion");
        Poll::Ready(reading.judge(read))
    }
}

// === impl Reading ===

impl<R: Body<Data = Bytes>> Reading<R> {
    fn new(asked: Asked, answer: Response<R>) -> Self {
        let (head, body) = answer.into_parts();
        Self {
            asked,
            head,
            rest: Box::pin(body),
            read: VecDeque::new(),
            text: Vec::new(),
            late: Box::pin(sleep(PATIENCE)),
        }
    }

    /// Reads to the end, to a limit, or to an error. Returns whether this is all of it.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, R::Error>> {
        while self.text.len() <= MOST {
            match self.rest.as_mut().poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    self.text.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
                    self.read.push_back(frame);
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(None) => return Poll::Ready(Ok(self.text.len() <= MOST)),
                Poll::Pending => return self.late.as_mut().poll(cx).map(|()| Ok(false)),
            }
        }
        Poll::Ready(Ok(false))
    }

    fn judge(self, all: Result<bool, R::Error>) -> Result<Answer<R>, Box<dyn Error + Send + Sync>> {
        let Self { asked, head, rest, read, text, late: _ } = self;
        let Some(message) = asked.settings.denial.in_answer(&text).filter(|_| matches!(all, Ok(true))) else {
            return Ok(Response::from_parts(head, ResponseBody::replayed(read, all.err(), rest)));
        };
        let error = ErrNotLeader::by_the_fence(asked.method, asked.uri, asked.upgrade, message);
        if let Some(request) = error.attempt().request() {
            let (verb, resource) = (request.verb(), request.target());
            tracing::warn!(%verb, %resource, "the fence refused an admitted write: {error}");
        }
        if let Some(observer) = asked.settings.observer {
            observer.fenced(&error);
        }
        Err(error.into())
    }
}

impl<F, R: Body> std::fmt::Debug for ResponseFuture<F, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseFuture").field("reading", &self.reading.is_some()).finish_non_exhaustive()
    }
}
