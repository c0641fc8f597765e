//! The pieces of a watch stream.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::json;
use tokio::time::Instant;

use crate::error::ConnectionDropped;
use crate::path::Collection;
use crate::status::Refusal;

/// One piece of a watch stream: bytes, or the loss of the connection.
pub(crate) type Piece = Result<Bytes, ConnectionDropped>;

/// A piece, and when it happened.
pub(crate) type Dated = (Instant, Piece);

/// How a watch stream breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchBreak {
    /// The stream ends between two events, as at its timeout.
    End,
    /// The server sends half a line, then drops the connection.
    Cut,
    /// The server sends a line that is not JSON, then goes on.
    Garbage,
    /// The server reports in the stream that the version has expired, and ends it.
    Expired,
}

/// Makes the line `{"type":…,"object":…}`.
pub(crate) fn line(kind: &str, object: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(kind.len() + object.len() + 24);
    line.put_slice(b"{\"type\":\"");
    line.put_slice(kind.as_bytes());
    line.put_slice(b"\",\"object\":");
    line.put_slice(object);
    line.put_slice(b"}\n");
    line.freeze()
}

/// Makes the line of a bookmark. `complete` marks the end of the initial events.
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
    /// The last pieces of a broken stream.
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
            Self::Expired => {
                vec![Ok(line("ERROR", Refusal::expired(1, 2).to_status().to_string().as_bytes()))]
            }
        }
    }
}
