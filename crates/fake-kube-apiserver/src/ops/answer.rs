//! The answers of operations, and the checks that they share.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::object::kinds::known_kind;
use crate::object::members::text;
use crate::object::stored::Object;
use crate::path::{Collection, Target};
use crate::status::Refusal;
use crate::store::Store;
use crate::store::piece::Dated;

/// The answer of a successful operation.
#[derive(Debug)]
pub(crate) enum Answer {
    Object(u16, Arc<Object>),
    List(List),
    Json(u16, Value),
    Watch(WatchStart),
}

#[derive(Debug)]
pub(crate) struct List {
    pub(crate) collection: Collection,
    pub(crate) kind: String,
    pub(crate) version: u64,
    pub(crate) items: Vec<Arc<Object>>,
    /// The token for the next page, and how many objects are left if the server knows it.
    pub(crate) more: Option<(String, Option<usize>)>,
}

/// The start of a watch.
#[derive(Debug)]
pub(crate) struct WatchStart {
    /// The first lines: the initial state, or the history since the requested version.
    pub(crate) first: VecDeque<Bytes>,
    /// The live events. None for a watch that ends after the first lines.
    pub(crate) live: Option<(u64, mpsc::Receiver<Dated>)>,
    /// The kind in the bookmarks, if the client allows bookmarks.
    pub(crate) bookmarks: Option<String>,
    pub(crate) timeout: Option<Duration>,
}

pub(crate) fn new_list(
    store: &Store,
    collection: &Collection,
    version: u64,
    items: Vec<Arc<Object>>,
) -> List {
    let kind = format!("{}List", collection_kind(store, collection));
    List { collection: collection.clone(), kind, version, items, more: None }
}

pub(crate) fn list_answer(
    store: &Store,
    collection: &Collection,
    version: u64,
    items: Vec<Arc<Object>>,
) -> Answer {
    Answer::List(new_list(store, collection, version, items))
}

pub(crate) fn collection_kind(store: &Store, collection: &Collection) -> String {
    known_kind(collection).or_else(|| store.objects().kind_in(collection)).unwrap_or_default().to_owned()
}

/// Refuses a body with another name or namespace than the path.
pub(crate) fn check_place(target: &Target, object: &Value) -> Result<(), Refusal> {
    let (name, namespace) = (text(object, "name"), text(object, "namespace"));
    if let Some(in_path) = target.name.as_deref()
        && !name.is_empty()
        && name != in_path
    {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({in_path})"
        )));
    }
    if !namespace.is_empty() && target.namespace.as_deref() != Some(namespace) {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Refusal::bad_request(why));
    }
    Ok(())
}

/// Refuses the body of an update without a name.
pub(crate) fn check_name(target: &Target, object: &Value) -> Result<(), Refusal> {
    if text(object, "name").is_empty() {
        let in_path = target.name.as_deref().unwrap_or_default();
        return Err(Refusal::bad_request(format!(
            "the name of the object ({in_path} based on URL) was undeterminable: name must be provided"
        )));
    }
    Ok(())
}
