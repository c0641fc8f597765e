//! A watch of objects: its path, how long it lasts, its lines and what they say.

use super::call::LONGEST;
use crate::lease::error::{ErrLock, ErrLockKind};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use http::StatusCode;
use http_body_util::BodyExt;
use kube_client::client::Body;
use serde_json::Value;

/// The shortest time that a watch asks for, in seconds. It adds a random time up to the same again, so that watches
/// do not all end together.
const SECONDS: u64 = 300;

/// What has happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is there, perhaps changed.
    Seen,
    /// It was deleted. The object is the last one that there was.
    Deleted,
}

/// The path that watches all objects of a collection.
pub(crate) fn watch_of_all(collection: &str) -> String {
    let seconds = SECONDS + fastrand::u64(..SECONDS);
    format!("{collection}?watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}")
}

/// The path that watches the object `name` of a collection. Some servers ignore the name.
pub(crate) fn watch_of_one(collection: &str, name: &str) -> String {
    format!("{}&fieldSelector=metadata.name%3D{name}", watch_of_all(collection))
}

/// Reads a line: what has happened, and the object. None for a bookmark. An error ends the watch: either the API server
/// reports one, or the line makes no sense.
pub(crate) fn change(line: &[u8]) -> Result<Option<(Change, Value)>, ErrLock> {
    let garbage = |message: String| ErrLock::new(ErrLockKind::BadAnswer, message);
    let mut event: Value = serde_json::from_slice(line)
        .map_err(|error| garbage(format!("a line of the watch is not JSON: {error}")))?;
    let object = event.get_mut("object").map(Value::take).unwrap_or_default();
    match event.get("type").and_then(Value::as_str) {
        Some("ADDED" | "MODIFIED") => Ok(Some((Change::Seen, object))),
        Some("DELETED") => Ok(Some((Change::Deleted, object))),
        Some("BOOKMARK") => Ok(None),
        Some("ERROR") => Err(reported(&object)),
        _ => Err(garbage("a line of the watch has no known type".into())),
    }
}

/// The error in a line. One without a code counts as an error of the server.
fn reported(status: &Value) -> ErrLock {
    let code = status.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let code = code.and_then(|code| StatusCode::from_u16(code).ok());
    let message = status.get("message").and_then(Value::as_str).unwrap_or("an error without a message");
    ErrLock::refusal(code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), None, message)
}

/// Splits `body` at line feeds. A line of more than [`LONGEST`] bytes is an error and ends the stream. A body that
/// breaks off does the same. A last line without a line feed is dropped.
pub(crate) fn lines(body: Body) -> impl Stream<Item = Result<Bytes, ErrLock>> + Send + Unpin {
    stream::unfold(Some((body, BytesMut::new(), 0)), |state| async move {
        let (mut body, mut read, mut searched) = state?;
        loop {
            if let Some(at) = read[searched..].iter().position(|byte| *byte == b'\n') {
                let line = read.split_to(searched + at + 1).freeze();
                return Some((Ok(line), Some((body, read, 0))));
            }
            searched = read.len();
            if read.len() > LONGEST {
                let message = format!("a line of the watch is longer than {LONGEST} bytes");
                return Some((Err(ErrLock::new(ErrLockKind::BadAnswer, message)), None));
            }
            match body.frame().await? {
                Ok(frame) => read.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
                Err(error) => {
                    let message = format!("the watch broke: {error}");
                    return Some((Err(ErrLock::cut_off(message)), None));
                }
            }
        }
    })
    .boxed()
}
