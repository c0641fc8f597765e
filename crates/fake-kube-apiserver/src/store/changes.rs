//! The latest changes, and the open watches.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::object::members::set_version;
use crate::object::stored::{Key, Object};
use crate::status::Refusal;
use crate::store::filter::Filter;
use crate::store::piece::{Dated, WatchBreak, bookmark, line};

/// One write on one object.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) key: Key,
    pub(crate) before: Option<Arc<Object>>,
    /// The object as written. If it was deleted: its last state, with the version of the deletion.
    pub(crate) object: Arc<Object>,
    pub(crate) deleted: bool,
}

#[derive(Debug)]
struct Watcher {
    id: u64,
    user: String,
    filter: Filter,
    pieces: mpsc::Sender<Dated>,
}

/// The event history and the open watches.
#[derive(Debug)]
pub(crate) struct Changes {
    history: VecDeque<Change>,
    limit: usize,
    buffer: usize,
    /// The history has no changes up to this version.
    forgotten: u64,
    watchers: Vec<Watcher>,
    next_id: u64,
}

// === impl Change ===

impl Change {
    /// This change as a line of a watch stream. None if the filter does not cover it.
    fn line(&self, filter: &Filter) -> Option<Bytes> {
        if !filter.covers(&self.key) {
            return None;
        }
        let before = self.before.as_ref().filter(|it| filter.selector.matches(&it.value));
        let now = !self.deleted && filter.selector.matches(&self.object.value);
        match (before, now) {
            (None, false) => None,
            (None, true) => Some(line("ADDED", &self.object.bytes)),
            (Some(_), true) => Some(line("MODIFIED", &self.object.bytes)),
            (Some(_), false) if self.deleted => Some(line("DELETED", &self.object.bytes)),
            (Some(before), false) => {
                let mut last = before.value.clone();
                set_version(&mut last, self.version);
                Some(line("DELETED", last.to_string().as_bytes()))
            }
        }
    }
}

// === impl Changes ===

impl Changes {
    pub(crate) fn new(limit: usize, buffer: usize) -> Self {
        Self { history: VecDeque::new(), limit, buffer, forgotten: 0, watchers: Vec::new(), next_id: 0 }
    }

    /// Keeps the change, and sends it to the watches. Closes a watch whose buffer is full.
    pub(crate) fn record(&mut self, change: Change) {
        let now = Instant::now();
        self.watchers.retain(|it| match change.line(&it.filter) {
            Some(line) => it.pieces.try_send((now, Ok(line))).is_ok(),
            None => !it.pieces.is_closed(),
        });
        self.history.push_back(change);
        while self.history.len() > self.limit {
            self.forgotten = self.history.pop_front().map_or(self.forgotten, |it| it.version);
        }
    }

    /// Forgets the history up to `version`, as etcd's compaction does.
    pub(crate) fn compact(&mut self, version: u64) {
        self.history.retain(|it| it.version > version);
        self.forgotten = self.forgotten.max(version);
    }

    pub(crate) fn has_forgotten(&self, version: u64) -> bool {
        version < self.forgotten
    }

    /// The lines of the changes after `version`.
    pub(crate) fn since(&self, filter: &Filter, version: u64) -> Result<VecDeque<Bytes>, Refusal> {
        if self.has_forgotten(version) {
            return Err(Refusal::expired(version, self.forgotten));
        }
        Ok(self.after(version).filter_map(|it| it.line(filter)).collect())
    }

    /// The changes after `version` that are not forgotten.
    pub(crate) fn after(&self, version: u64) -> impl DoubleEndedIterator<Item = &Change> {
        self.history.iter().filter(move |it| it.version > version)
    }

    pub(crate) fn subscribe(&mut self, user: &str, filter: Filter) -> (u64, mpsc::Receiver<Dated>) {
        let (pieces, receiver) = mpsc::channel(self.buffer);
        self.next_id += 1;
        self.watchers.push(Watcher { id: self.next_id, user: user.to_owned(), filter, pieces });
        (self.next_id, receiver)
    }

    pub(crate) fn unsubscribe(&mut self, id: u64) {
        self.watchers.retain(|it| it.id != id);
    }

    pub(crate) fn watchers(&self) -> usize {
        self.watchers.len()
    }

    /// Sends a bookmark to one watch, after all events that it covers.
    pub(crate) fn bookmark(&mut self, id: u64, version: u64, kind: &str) {
        self.watchers.retain(|it| {
            let line = || bookmark(&it.filter.collection, kind, version, false);
            it.id != id || it.pieces.try_send((Instant::now(), Ok(line()))).is_ok()
        });
    }

    /// Breaks the watches whose user matches. Returns how many.
    pub(crate) fn break_watches(&mut self, matches: impl Fn(&str) -> bool, how: WatchBreak) -> usize {
        let (mut broken, now) = (0, Instant::now());
        self.watchers.retain(|it| {
            if !matches(&it.user) {
                return true;
            }
            broken += 1;
            // A watch whose buffer is full only ends.
            let sent = how.pieces().into_iter().all(|piece| it.pieces.try_send((now, piece)).is_ok());
            sent && how == WatchBreak::Garbage
        });
        broken
    }
}
