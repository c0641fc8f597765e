//! What a watch stream consists of.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::json;

use crate::error::ConnectionDropped;
use crate::path::Collection;

/// One piece of a watch stream: bytes, or the connection's end in the middle of the answer.
pub(crate) type Piece = Result<Bytes, ConnectionDropped>;

/// How a watch stream breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchBreak {
    /// It ends between two events, as at the end of its time.
    End,
    /// Half a line, then the connection is lost.
    Cut,
    /// A line that is no JSON; then the stream goes on.
    Garbage,
}

/// `{"type":…,"object":…}` and a line feed.
pub(crate) fn line(kind: &str, object: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(kind.len() + object.len() + 24);
    line.put_slice(b"{\"type\":\"");
    line.put_slice(kind.as_bytes());
    line.put_slice(b"\",\"object\":");
    line.put_slice(object);
    line.put_slice(b"}\n");
    line.freeze()
}

/// A bookmark of a collection; `complete` says that the initial events have all been sent.
pub(crate) fn bookmark(collection: &Collection, kind: &str, version: u64, complete: bool) -> Bytes {
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

// === impl WatchBreak ===

impl WatchBreak {
    /// What a broken stream sends last.
    pub(crate) fn pieces(self) -> Vec<Piece> {
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
