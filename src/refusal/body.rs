//! The body of an answer, of which some may have been read already.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

/// The body of an answer, as it came.
pub struct ResponseBody<R: Body> {
    /// What was read comes first, then the error that ended the reading, then what was not read.
    pub(super) read: VecDeque<Frame<R::Data>>,
    pub(super) failed: Option<R::Error>,
    pub(super) rest: R,
}

impl<R: Body> Unpin for ResponseBody<R> where R: Unpin {}

impl<R: Body> ResponseBody<R> {
    pub(super) const fn new(rest: R) -> Self {
        Self { read: VecDeque::new(), failed: None, rest }
    }
}

impl<R: Body<Data = Bytes> + Unpin> Body for ResponseBody<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        match (self.read.pop_front(), self.failed.take()) {
            (Some(frame), error) => {
                self.failed = error;
                Poll::Ready(Some(Ok(frame)))
            }
            (None, Some(error)) => Poll::Ready(Some(Err(error))),
            (None, None) => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.failed.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let read: usize = self.read.iter().filter_map(Frame::data_ref).map(Bytes::len).sum();
        let (read, mut hint) = (read as u64, self.rest.size_hint());
        // The upper bound first: it may not be below the lower one.
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + read);
        }
        hint.set_lower(hint.lower() + read);
        hint
    }
}

impl<R: Body> fmt::Debug for ResponseBody<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").field("read", &self.read.len()).finish_non_exhaustive()
    }
}
