//! The body of an answer, of which some may have been read already.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

type Read<R> = Result<Frame<<R as Body>::Data>, <R as Body>::Error>;

/// The body of an answer, as it came.
pub struct ResponseBody<R: Body> {
    /// What was read comes first.
    pub(super) read: VecDeque<Read<R>>,
    /// What was not read. None after its end, and after an error.
    rest: Option<R>,
}

impl<R: Body + Unpin> Unpin for ResponseBody<R> {}

impl<R: Body> ResponseBody<R> {
    pub(super) const fn new(rest: R) -> Self {
        Self { read: VecDeque::new(), rest: Some(rest) }
    }
}

impl<R: Body + Unpin> ResponseBody<R> {
    /// Polls what was not read.
    pub(super) fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Option<Read<R>>> {
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(rest).poll_frame(cx));
        self.rest.take_if(|_| !matches!(frame, Some(Ok(_))));
        Poll::Ready(frame)
    }
}

impl<R: Body<Data = Bytes> + Unpin> Body for ResponseBody<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        self.read.pop_front().map_or_else(|| self.poll_rest(cx), |frame| Poll::Ready(Some(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let read: usize = self.read.iter().flatten().filter_map(Frame::data_ref).map(Bytes::len).sum();
        let rest = self.rest.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(read as u64));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(read as u64));
        }
        hint
    }
}

impl<R: Body> fmt::Debug for ResponseBody<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").field("read", &self.read.len()).finish_non_exhaustive()
    }
}
