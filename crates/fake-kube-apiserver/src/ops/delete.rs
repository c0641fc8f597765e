//! Deletion of one object or of a collection.

use std::sync::Arc;

use serde_json::json;

use crate::object::kinds::kind_of;
use crate::object::members::{has_finalizers, is_marked, metadata};
use crate::object::stored::{Key, Object};
use crate::object::time;
use crate::ops::answer::{Answer, list_answer};
use crate::path::Target;
use crate::request::RequestInfo;
use crate::request::list::ListOptions;
use crate::request::write::DeleteOptions;
use crate::status::Refusal;
use crate::store::Store;

/// Deletes an object. One with finalizers is only marked: it stays until an update removes its last finalizer.
pub(crate) fn delete(store: &mut Store, key: Key, wanted: &DeleteOptions) -> Result<Answer, Refusal> {
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

/// Deletes the objects that the selectors choose. The answer shows them as they were.
pub(crate) fn delete_collection(
    store: &mut Store,
    info: &RequestInfo,
    target: &Target,
    wanted: &DeleteOptions,
) -> Result<Answer, Refusal> {
    let options = ListOptions::parse(&target.collection, None, &info.query, false)?;
    let found = store.objects().list(&options.filter(target));
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

/// Returns the object if it meets the client's preconditions.
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
