//! Deletion, of one object or of many.

use std::sync::Arc;

use serde_json::{Value, json};

use super::kinds::kind_of;
use super::object::{Key, Object, metadata};
use super::ops::{Answer, list_answer};
use super::options::ListOptions;
use super::path::Target;
use super::request::RequestInfo;
use super::status::Refusal;
use super::store::Store;
use super::time;
use super::write_options::DeleteOptions;

/// An object with finalizers stays, marked, until an update takes the last of them away.
pub(super) fn delete(store: &mut Store, key: Key, wanted: &DeleteOptions) -> Result<Answer, Refusal> {
    let object = check(store, &key, wanted)?;
    if has_finalizers(&object.value) {
        return Ok(Answer::Object(200, mark(store, key, object, wanted.dry)));
    }
    let Key { collection, name, .. } = &key;
    let mut details = json!({ "name": name, "kind": collection.resource, "uid": object.uid() });
    if !collection.group.is_empty() {
        details["group"] = collection.group.as_str().into();
    }
    if !wanted.dry {
        store.remove(key);
    }
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
    });
    Ok(Answer::Json(200, status))
}

/// Deletes what the selectors choose; the answer shows it as it was.
pub(super) fn delete_collection(
    store: &mut Store,
    info: &RequestInfo,
    target: &Target,
    wanted: &DeleteOptions,
) -> Result<Answer, Refusal> {
    let options = ListOptions::parse(&target.collection, None, &info.query, false)?;
    let found = store.list(&options.filter(target));
    let items = found.iter().map(|(_, object)| Arc::clone(object)).collect();
    for (key, object) in found {
        check(store, &key, wanted)?;
        if has_finalizers(&object.value) {
            mark(store, key, object, wanted.dry);
        } else if !wanted.dry {
            store.remove(key);
        }
    }
    Ok(list_answer(store, &target.collection, store.version(), items))
}

pub(super) fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|it| !it.is_empty())
}

/// Whether the deletion of the object has begun.
pub(super) fn is_marked(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// The object, when it is what the client wants to delete.
fn check(store: &Store, key: &Key, wanted: &DeleteOptions) -> Result<Arc<Object>, Refusal> {
    let Key { collection, name, .. } = key;
    let object = store.get(key).ok_or_else(|| Refusal::not_found(collection, name))?;
    let kind = kind_of(collection, &object.value);
    let (uid, version) = (object.uid(), object.version());
    if let Some(asked) = wanted.uid.as_deref().filter(|it| *it != uid) {
        let why = format!(
            "the UID in the precondition ({asked}) does not match the UID in record ({uid}). \
             The object might have been deleted and then recreated"
        );
        return Err(Refusal::precondition(&kind, collection, name, &why));
    }
    if let Some(asked) = wanted.version.as_deref().filter(|it| *it != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record \
             ({version}). The object might have been modified"
        );
        return Err(Refusal::precondition(&kind, collection, name, &why));
    }
    Ok(object)
}

fn mark(store: &mut Store, key: Key, object: Arc<Object>, dry: bool) -> Arc<Object> {
    if is_marked(&object.value) {
        return object;
    }
    let mut marked = object.value.clone();
    let metadata = metadata(&mut marked);
    metadata.insert("deletionTimestamp".into(), time::now().into());
    metadata.insert("deletionGracePeriodSeconds".into(), 0.into());
    if dry { Arc::new(Object::new(marked)) } else { store.put(key, marked) }
}
