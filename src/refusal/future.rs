//! The response future: it reads the answer of a refused write.

use super::{body::ResponseBody, settings::Asked};
use crate::gate::ErrNotLeader;
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Body;
use pin_project_lite::pin_project;
use std::{
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
    answer: Answer<R>,
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
    R: Body<Data = Bytes> + Unpin,
{
    type Output = Result<Answer<R>, Box<dyn Error + Send + Sync>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if this.reading.is_none() {
            let answer = ready!(this.inner.poll(cx)).map_err(Into::into)?.map(ResponseBody::new);
            let refused = answer.status() == StatusCode::FORBIDDEN;
            let Some(asked) = this.asked.take().filter(|_| refused) else {
                return Poll::Ready(Ok(answer));
            };
            let late = Box::pin(sleep(PATIENCE));
            *this.reading = Some(Reading { asked, answer, text: Vec::new(), late });
        }
        let complete = match this.reading {
            Some(reading) => ready!(reading.poll(cx)),
            None => false,
        };
        let reading = this.reading.take().expect("ResponseFuture polled after completion");
        Poll::Ready(reading.judge(complete))
    }
}

// === impl Reading ===

impl<R: Body<Data = Bytes> + Unpin> Reading<R> {
    /// Reads to the end, to a limit, or to an error. Returns whether this is all.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let body = self.answer.body_mut();
        while self.text.len() <= MOST {
            match Pin::new(&mut body.rest).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    self.text.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
                    body.read.push_back(frame);
                }
                Poll::Ready(Some(Err(error))) => {
                    body.failed = Some(error);
                    return Poll::Ready(false);
                }
                Poll::Ready(None) => return Poll::Ready(self.text.len() <= MOST),
                Poll::Pending => return self.late.as_mut().poll(cx).map(|()| false),
            }
        }
        Poll::Ready(false)
    }

    fn judge(self, complete: bool) -> Result<Answer<R>, Box<dyn Error + Send + Sync>> {
        let Self { asked, answer, text, late: _ } = self;
        let Some(message) = asked.settings.denial.in_answer(&text).filter(|_| complete) else {
            return Ok(answer);
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
