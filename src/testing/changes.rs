//! What has changed lately, and who watches.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::json;
use tokio::sync::mpsc;

use super::object::{Object, set_version};
use super::path::Collection;
use super::selector::Selector;
use super::service::ConnectionDropped;
use super::status::Refusal;

/// One piece of a watch stream: bytes, or the connection's end in the middle of the answer.
pub(super) type Piece = Result<Bytes, ConnectionDropped>;

/// How a watch stream breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// It ends between two events, as at the end of its time.
    End,
    /// Half a line, then the connection is lost.
    Cut,
    /// A line that is no JSON; then the stream goes on.
    Garbage,
}

/// One write to one object.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) version: u64,
    pub(super) collection: Collection,
    pub(super) namespace: String,
    pub(super) before: Option<Arc<Object>>,
    /// The object as written; of a deleted one its last state, with the version of the deletion.
    pub(super) object: Arc<Object>,
    pub(super) deleted: bool,
}

/// What a watch wants to see.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    pub(super) collection: Collection,
    pub(super) namespace: Option<String>,
    pub(super) selector: Selector,
}

#[derive(Debug)]
struct Watcher {
    id: u64,
    user: String,
    filter: Filter,
    pieces: mpsc::Sender<Piece>,
}

/// The event history and the open watches.
#[derive(Debug)]
pub(super) struct Changes {
    history: VecDeque<Change>,
    limit: usize,
    buffer: usize,
    /// Changes up to this version have been forgotten.
    forgotten: u64,
    watchers: Vec<Watcher>,
    next_id: u64,
}

// === impl Change ===

impl Change {
    /// This change as a line of a watch stream; none when the watch does not see it.
    fn line(&self, filter: &Filter) -> Option<Bytes> {
        if !filter.covers(&self.collection, &self.namespace) {
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

/// `{"type":…,"object":…}` and a line feed.
pub(super) fn line(kind: &str, object: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(kind.len() + object.len() + 24);
    line.put_slice(b"{\"type\":\"");
    line.put_slice(kind.as_bytes());
    line.put_slice(b"\",\"object\":");
    line.put_slice(object);
    line.put_slice(b"}\n");
    line.freeze()
}

/// A bookmark of a collection; `complete` says that the initial events have all been sent.
pub(super) fn bookmark(collection: &Collection, kind: &str, version: u64, complete: bool) -> Bytes {
    let mut object = json!({
        "kind": kind, "apiVersion": collection.api_version(),
        "metadata": { "resourceVersion": version.to_string() },
    });
    if collection.is_lease() {
        object["spec"] = json!({});
    }
    if complete {
        object["metadata"]["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
    }
    line("BOOKMARK", object.to_string().as_bytes())
}

// === impl Filter ===

impl Filter {
    pub(super) fn covers(&self, collection: &Collection, namespace: &str) -> bool {
        self.collection == *collection && self.namespace.as_deref().is_none_or(|it| it == namespace)
    }
}

// === impl Changes ===

impl Changes {
    pub(super) fn new(limit: usize, buffer: usize) -> Self {
        Self { history: VecDeque::new(), limit, buffer, forgotten: 0, watchers: Vec::new(), next_id: 0 }
    }

    /// Keeps the change and tells the watches. One that does not keep up is closed.
    pub(super) fn record(&mut self, change: Change) {
        self.watchers.retain(|it| match change.line(&it.filter) {
            Some(line) => it.pieces.try_send(Ok(line)).is_ok(),
            None => !it.pieces.is_closed(),
        });
        self.history.push_back(change);
        while self.history.len() > self.limit {
            self.forgotten = self.history.pop_front().map_or(self.forgotten, |it| it.version);
        }
    }

    /// Forgets the history up to `version`, as etcd's compaction does.
    pub(super) fn compact(&mut self, version: u64) {
        self.history.retain(|it| it.version > version);
        self.forgotten = self.forgotten.max(version);
    }

    pub(super) fn has_forgotten(&self, version: u64) -> bool {
        version < self.forgotten
    }

    /// The lines of what has happened after `version`.
    pub(super) fn since(&self, filter: &Filter, version: u64) -> Result<VecDeque<Bytes>, Refusal> {
        if self.has_forgotten(version) {
            return Err(Refusal::expired(version, self.forgotten));
        }
        Ok(self.history.iter().filter(|it| it.version > version).filter_map(|it| it.line(filter)).collect())
    }

    pub(super) fn subscribe(&mut self, user: &str, filter: Filter) -> (u64, mpsc::Receiver<Piece>) {
        let (pieces, receiver) = mpsc::channel(self.buffer);
        self.next_id += 1;
        self.watchers.push(Watcher { id: self.next_id, user: user.to_owned(), filter, pieces });
        (self.next_id, receiver)
    }

    pub(super) fn unsubscribe(&mut self, id: u64) {
        self.watchers.retain(|it| it.id != id);
    }

    pub(super) fn watchers(&self) -> usize {
        self.watchers.len()
    }

    /// Sends a bookmark to one watch, behind all the events that it covers.
    pub(super) fn bookmark(&mut self, id: u64, version: u64, kind: &str) {
        self.watchers.retain(|it| {
            it.id != id
                || it.pieces.try_send(Ok(bookmark(&it.filter.collection, kind, version, false))).is_ok()
        });
    }

    /// Breaks the watches whose user matches; says how many.
    pub(super) fn break_watches(&mut self, matches: impl Fn(&str) -> bool, how: Break) -> usize {
        let mut broken = 0;
        self.watchers.retain(|it| {
            if !matches(&it.user) {
                return true;
            }
            broken += 1;
            // A stream whose buffer is full just ends.
            let sent = how.pieces().into_iter().all(|piece| it.pieces.try_send(piece).is_ok());
            sent && how == Break::Garbage
        });
        broken
    }
}

// === impl Break ===

impl Break {
    /// What a broken stream sends last.
    pub(super) fn pieces(self) -> Vec<Piece> {
        match self {
            Self::End => Vec::new(),
            Self::Cut => {
                vec![
                    Ok(Bytes::from_static(b"{\"type\":\"MODIFIED\",\"object\":{\"kin")),
                    Err(ConnectionDropped),
                ]
            }
            Self::Garbage => vec![Ok(Bytes::from_static(b"<html>\xff\xfe not json\n"))],
        }
    }
}
