//! The body of an answer, of which some may have been read already.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

pin_project! {
    /// The body of an answer, as it came.
    pub struct ResponseBody<R: Body> {
        #[pin]
        state: State<R>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<R: Body> {
        Untouched { #[pin] body: R },
        // What was read comes first, then the error that ended the reading, then what was not read.
        Replayed { read: VecDeque<Frame<R::Data>>, failed: Option<R::Error>, rest: Pin<Box<R>> },
    }
}

impl<R: Body> ResponseBody<R> {
    pub(super) const fn untouched(body: R) -> Self {
        Self { state: State::Untouched { body } }
    }

    pub(super) const fn replayed(
        read: VecDeque<Frame<R::Data>>,
        failed: Option<R::Error>,
        rest: Pin<Box<R>>,
    ) -> Self {
        Self { state: State::Replayed { read, failed, rest } }
    }
}

impl<R: Body<Data = Bytes>> Body for ResponseBody<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        match self.project().state.project() {
            StateProj::Untouched { body } => body.poll_frame(cx),
            StateProj::Replayed { read, failed, rest } => match (read.pop_front(), failed.take()) {
                (Some(frame), error) => {
                    *failed = error;
                    Poll::Ready(Some(Ok(frame)))
                }
                (None, Some(error)) => Poll::Ready(Some(Err(error))),
                (None, None) => rest.as_mut().poll_frame(cx),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.state {
            State::Untouched { body } => body.is_end_stream(),
            State::Replayed { read, failed, rest } => {
                read.is_empty() && failed.is_none() && rest.is_end_stream()
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Untouched { body } => body.size_hint(),
            State::Replayed { read, rest, .. } => {
                let read: usize = read.iter().filter_map(Frame::data_ref).map(Bytes::len).sum();
                let (read, mut hint) = (read as u64, rest.size_hint());
                // The upper bound first: it may not be below the lower one.
                if let Some(upper) = hint.upper() {
                    hint.set_upper(upper + read);
                }
                hint.set_lower(hint.lower() + read);
                hint
            }
        }
    }
}

impl<R: Body> fmt::Debug for ResponseBody<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let touched = matches!(self.state, State::Replayed { .. });
        f.debug_struct("ResponseBody").field("replayed", &touched).finish_non_exhaustive()
    }
}
