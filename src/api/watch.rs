//! A watch of objects: its path, how long it lasts, and what its lines say.

use super::{
    call::open,
    error::{CallError, Failure},
    lines::lines,
};
use bytes::Bytes;
use futures_util::{StreamExt, stream::BoxStream};
use http::{Method, StatusCode};
use kube_client::Client;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The longest pause between two attempts to watch, for example if the API server refuses the watch.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The shortest time that a watch asks for, in seconds. It adds a random time up to the same again, so that watches
/// do not all end together.
const SECONDS: u64 = 300;

/// How much later than asked for a watch ends by itself. The API server's end of it may be lost with the connection.
const OVERDUE: Duration = Duration::from_secs(30);

/// The lines of a watch.
pub(crate) type Lines = BoxStream<'static, Result<Bytes, CallError>>;

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
    of_all(collection, seconds())
}

/// The path that watches the object `name` of a collection. Some servers ignore the name.
pub(crate) fn watch_of_one(collection: &str, name: &str) -> String {
    of_one(collection, name, seconds())
}

/// Begins to watch the object `name` of a collection. The API server must begin to answer within `patience`. The stream
/// ends soon after the time that the watch asks for, even if its connection hangs.
pub(crate) async fn watch_one(
    client: &Client,
    collection: &str,
    name: &str,
    patience: Duration,
) -> Result<Lines, CallError> {
    let seconds = seconds();
    let opened = open(client, Method::GET, of_one(collection, name, seconds), None);
    let body = timeout(patience, opened).await.unwrap_or_else(|_| Err(CallError::timeout(patience)))?;
    Ok(lines(body).take_until(sleep(Duration::from_secs(seconds) + OVERDUE)).boxed())
}

/// Reads a line: what has happened, and the object. None for a bookmark. An error ends the watch: either the API server
/// reports one, or the line makes no sense.
pub(crate) fn change(line: &[u8]) -> Result<Option<(Change, Value)>, CallError> {
    let garbage = |message: String| CallError::new(Failure::Garbage, message);
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

fn seconds() -> u64 {
    SECONDS + fastrand::u64(..SECONDS)
}

fn of_all(collection: &str, seconds: u64) -> String {
    format!("{collection}?watch=true&timeoutSeconds={seconds}")
}

fn of_one(collection: &str, name: &str, seconds: u64) -> String {
    format!("{}&fieldSelector=metadata.name%3D{name}", of_all(collection, seconds))
}

/// The error in a line. One without a code counts as an error of the server.
fn reported(status: &Value) -> CallError {
    let code = status.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let code = code.and_then(|code| StatusCode::from_u16(code).ok());
    let message = status.get("message").and_then(Value::as_str).unwrap_or("an error without a message");
    CallError::new(Failure::Status(code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)), message)
}
