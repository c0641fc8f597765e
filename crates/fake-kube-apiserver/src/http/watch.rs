//! The body of a watch: one JSON object on each line, as events happen.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep, sleep_until};

use crate::error::ConnectionDropped;
use crate::http::render;
use crate::ops::answer::WatchStart;
use crate::request::negotiate::Form;
use crate::server::Shared;
use crate::store::piece::{Dated, Piece, WatchBreak};

/// How often the server sends a bookmark to a watch that allows bookmarks.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// The stream of a watch. Dropping it ends the watch.
#[derive(Debug)]
pub(crate) struct WatchBody {
    shared: Arc<Shared>,
    form: Form,
    /// What comes before the live events. In a late watch, this also holds the live events that are not due.
    first: VecDeque<Dated>,
    /// How much later than it happened the watch sends each piece.
    late: Duration,
    due: Option<Pin<Box<Sleep>>>,
    /// The loss of the connection, while the bytes before it are being sent.
    lost: Option<ConnectionDropped>,
    live: Option<(u64, mpsc::Receiver<Dated>)>,
    bookmarks: Option<(Interval, String)>,
    deadline: Option<Pin<Box<Sleep>>>,
}

// === impl WatchBody ===

impl WatchBody {
    pub(crate) fn new(shared: Arc<Shared>, start: WatchStart, form: Form) -> Self {
        let interval = || {
            let mut it = tokio::time::interval_at(Instant::now() + BOOKMARK_INTERVAL, BOOKMARK_INTERVAL);
            // A client that has not read for an hour gets one bookmark, not sixty.
            it.set_missed_tick_behavior(MissedTickBehavior::Skip);
            it
        };
        Self {
            shared,
            form,
            first: start.first.into_iter().map(|it| (Instant::now(), Ok(it))).collect(),
            late: Duration::ZERO,
            due: None,
            lost: None,
            live: start.live,
            bookmarks: start.bookmarks.map(|kind| (interval(), kind)),
            deadline: start.timeout.map(|it| Box::pin(tokio::time::sleep(it))),
        }
    }

    /// Breaks the stream after its initial events.
    pub(crate) fn break_off(&mut self, how: WatchBreak) {
        self.first.extend(how.pieces().into_iter().map(|it| (Instant::now(), it)));
        if how != WatchBreak::Garbage {
            self.leave();
        }
    }

    /// Sends all from here on later than it happened.
    pub(crate) fn delay(&mut self, by: Duration) {
        self.late += by;
    }

    fn leave(&mut self) {
        if let Some((id, _)) = self.live.take() {
            self.shared.state().store.changes.unsubscribe(id);
        }
    }

    pub(crate) fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Piece>> {
        if let Some(lost) = self.lost.take() {
            return Poll::Ready(Some(Err(lost)));
        }
        let piece = if self.late.is_zero() {
            match self.first.pop_front() {
                Some((_, piece)) => Some(piece),
                None => ready!(self.poll_live(context)).map(|(_, piece)| piece),
            }
        } else {
            ready!(self.poll_late(context))
        };
        if let Some(Err(lost)) = piece {
            // The half line must be sent first: a transport that sees the error drops its unsent bytes.
            self.lost = Some(lost);
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(piece.map(|it| it.map(|line| render::event(line, self.form))))
    }

    /// Takes in all that has happened, and returns the first piece once it is due.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<Option<Piece>> {
        let ended = loop {
            match self.poll_live(context) {
                Poll::Ready(Some(piece)) => self.first.push_back(piece),
                Poll::Ready(None) => break true,
                Poll::Pending => break false,
            }
        };
        let Some((happened, _)) = self.first.front() else {
            return if ended { Poll::Ready(None) } else { Poll::Pending };
        };
        let due = *happened + self.late;
        let timer = self.due.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if timer.deadline() != due {
            timer.as_mut().reset(due);
        }
        ready!(timer.as_mut().poll(context));
        Poll::Ready(self.first.pop_front().map(|(_, piece)| piece))
    }

    fn poll_live(&mut self, context: &mut Context<'_>) -> Poll<Option<Dated>> {
        if self.deadline.as_mut().is_some_and(|it| it.as_mut().poll(context).is_ready()) {
            self.leave();
        }
        let Some((id, receiver)) = &mut self.live else {
            return Poll::Ready(None);
        };
        if let Some((interval, kind)) = &mut self.bookmarks {
            while interval.poll_tick(context).is_ready() {
                let mut state = self.shared.state();
                let version = state.store.version();
                state.store.changes.bookmark(*id, version, kind);
            }
        }
        receiver.poll_recv(context)
    }
}

impl Drop for WatchBody {
    fn drop(&mut self) {
        self.leave();
    }
}
