//! The body of a watch: one JSON object on each line, as events happen.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep};

use crate::error::ConnectionDropped;
use crate::ops::answer::WatchStart;
use crate::server::Shared;
use crate::store::piece::{Piece, WatchBreak};

/// How often the server sends a bookmark to a watch that allows bookmarks.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// The stream of a watch. Dropping it ends the watch.
#[derive(Debug)]
pub(crate) struct WatchBody {
    shared: Arc<Shared>,
    first: VecDeque<Piece>,
    /// The loss of the connection, while the bytes before it are being sent.
    lost: Option<ConnectionDropped>,
    live: Option<(u64, mpsc::Receiver<Piece>)>,
    bookmarks: Option<(Interval, String)>,
    deadline: Option<Pin<Box<Sleep>>>,
}

// === impl WatchBody ===

impl WatchBody {
    pub(crate) fn new(shared: Arc<Shared>, start: WatchStart) -> Self {
        let interval = || {
            let mut it = tokio::time::interval_at(Instant::now() + BOOKMARK_INTERVAL, BOOKMARK_INTERVAL);
            // A client that has not read for an hour gets one bookmark, not sixty.
            it.set_missed_tick_behavior(MissedTickBehavior::Skip);
            it
        };
        Self {
            shared,
            first: start.first.into_iter().map(Ok).collect(),
            lost: None,
            live: start.live,
            bookmarks: start.bookmarks.map(|kind| (interval(), kind)),
            deadline: start.timeout.map(|it| Box::pin(tokio::time::sleep(it))),
        }
    }

    /// Breaks the stream after its initial events.
    pub(crate) fn break_off(&mut self, how: WatchBreak) {
        self.first.extend(how.pieces());
        if how != WatchBreak::Garbage {
            self.leave();
        }
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
        let piece = match self.first.pop_front() {
            Some(piece) => Some(piece),
            None => ready!(self.poll_live(context)),
        };
        if let Some(Err(lost)) = piece {
            // The half line must be sent first: a transport that sees the error drops its unsent bytes.
            self.lost = Some(lost);
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(piece)
    }

    fn poll_live(&mut self, context: &mut Context<'_>) -> Poll<Option<Piece>> {
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
