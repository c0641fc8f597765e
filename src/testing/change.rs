//! Create, update and patch: what becomes of a body before it is stored.

use std::sync::Arc;

use serde_json::Value;

use super::body::{PatchKind, Payload};
use super::cause::Cause;
use super::kinds::kind_of;
use super::merge::merge;
use super::object::{Key, Object, copy_member, members, metadata, text};
use super::ops::{Answer, check_place};
use super::path::{Collection, Target};
use super::status::Refusal;
use super::store::Store;
use super::validate;

pub(super) fn create(
    store: &mut Store,
    target: &Target,
    mut object: Value,
    dry: bool,
) -> Result<Arc<Object>, Refusal> {
    let collection = &target.collection;
    validate::shape(collection, &object)?;
    check_place(target, &object)?;
    if !text(&object, "resourceVersion").is_empty() {
        return Err(Refusal::version_on_create());
    }
    let in_path = target.name.as_deref().unwrap_or_default();
    let name = match (in_path, text(&object, "name"), text(&object, "generateName")) {
        ("", "", "") => {
            let kind = kind_of(collection, &object);
            let cause = Cause::required("metadata.name", "name or generateName is required");
            return Err(Refusal::invalid(&kind, collection, "", &[cause]));
        }
        ("", "", prefix) => store.ids.name(prefix),
        ("", name, _) | (name, ..) => name.to_owned(),
    };
    let namespace = target.namespace.clone().unwrap_or_default();
    let key = Key { collection: collection.clone(), namespace, name };
    members(&mut object).remove("status");
    identify(store, &key, &mut object);
    validate::values(collection, &object)?;
    if store.get(&key).is_some() {
        return Err(Refusal::already_exists(collection, &key.name));
    }
    Ok(if dry { Arc::new(Object::new(object)) } else { store.put(key, object) })
}

pub(super) fn update(
    store: &mut Store,
    target: &Target,
    key: Key,
    object: Value,
    status: bool,
    dry: bool,
) -> Result<Answer, Refusal> {
    let collection = &target.collection;
    validate::shape(collection, &object)?;
    check_place(target, &object)?;
    let Some(existing) = store.get(&key) else {
        // Of the resources that an election meets, Lease alone may be created by a PUT.
        if !collection.is_lease() || status {
            return Err(Refusal::not_found(collection, &key.name));
        }
        return create_by_update(store, target, &key, object, dry);
    };
    replace(store, key, &existing, object, status, dry)
}

pub(super) fn patch(
    store: &mut Store,
    target: &Target,
    key: Key,
    payload: Payload,
    status: bool,
    dry: bool,
) -> Result<Answer, Refusal> {
    let collection = &target.collection;
    if !payload.value.is_object() {
        return Err(Refusal::bad_request("the body of the patch is not an object"));
    }
    let Some(existing) = store.get(&key) else {
        if payload.patch == Some(PatchKind::Apply) && !status {
            return create(store, target, payload.value, dry).map(|it| Answer::Object(201, it));
        }
        return Err(Refusal::not_found(collection, &key.name));
    };
    let mut object = existing.value.clone();
    merge(&mut object, payload.value);
    validate::shape(collection, &object)?;
    check_place(target, &object)?;
    replace(store, key, &existing, object, status, dry)
}

/// The server minds the uid here and forgets the version: a PUT with an old version and no uid makes a
/// deleted Lease again.
fn create_by_update(
    store: &mut Store,
    target: &Target,
    key: &Key,
    mut object: Value,
    dry: bool,
) -> Result<Answer, Refusal> {
    let uid = text(&object, "uid");
    if !uid.is_empty() {
        return Err(uid_conflict(key, uid, ""));
    }
    metadata(&mut object).remove("resourceVersion");
    create(store, target, object, dry).map(|it| Answer::Object(201, it))
}

fn replace(
    store: &mut Store,
    key: Key,
    existing: &Arc<Object>,
    object: Value,
    status: bool,
    dry: bool,
) -> Result<Answer, Refusal> {
    let collection = &key.collection;
    let uid = text(&object, "uid");
    if !uid.is_empty() && uid != existing.uid() {
        return Err(uid_conflict(&key, uid, existing.uid()));
    }
    match text(&object, "resourceVersion") {
        "" if needs_version(collection) => {
            let cause = Cause::invalid(
                "metadata.resourceVersion",
                &Value::from(0),
                "must be specified for an update",
            );
            return Err(Refusal::invalid(&collection.resource, collection, &key.name, &[cause]));
        }
        version if !version.is_empty() && version != existing.version() => {
            return Err(Refusal::stale(collection, &key.name));
        }
        _ => {}
    }
    let next = succeed(&key, &existing.value, object, status);
    validate::values(collection, &next)?;
    if next == existing.value {
        // Nothing changes: no new version, no event.
        return Ok(Answer::Object(200, Arc::clone(existing)));
    }
    Ok(Answer::Object(200, if dry { Arc::new(Object::new(next)) } else { store.put(key, next) }))
}

/// The next state of an object: the status endpoint changes the status alone, the main one everything else.
fn succeed(key: &Key, existing: &Value, object: Value, status: bool) -> Value {
    if status {
        let mut next = existing.clone();
        copy_member(members(&mut next), &object, "status");
        return next;
    }
    let mut next = object;
    copy_member(members(&mut next), existing, "status");
    keep_identity(key, existing, &mut next);
    next
}

/// What no write changes: name, namespace, uid, creation time, kind and, until it is stored, the version.
pub(super) fn keep_identity(key: &Key, existing: &Value, next: &mut Value) {
    for member in ["apiVersion", "kind"] {
        copy_member(members(next), existing, member);
    }
    let metadata = metadata(next);
    for member in ["uid", "creationTimestamp", "resourceVersion"] {
        copy_member(metadata, &existing["metadata"], member);
    }
    place(key, next);
}

/// What the server gives to a new object.
pub(super) fn identify(store: &mut Store, key: &Key, object: &mut Value) {
    let kind = kind_of(&key.collection, object);
    let members = members(object);
    members.insert("apiVersion".into(), key.collection.api_version().into());
    members.insert("kind".into(), kind.into());
    let now = jiff::Timestamp::now().as_second();
    let created = jiff::Timestamp::from_second(now).unwrap_or_default().to_string();
    let metadata = metadata(object);
    metadata.insert("uid".into(), store.ids.uid().into());
    metadata.insert("creationTimestamp".into(), created.into());
    metadata.remove("resourceVersion");
    place(key, object);
}

fn place(key: &Key, object: &mut Value) {
    let metadata = metadata(object);
    metadata.insert("name".into(), key.name.as_str().into());
    if key.namespace.is_empty() {
        metadata.remove("namespace");
    } else {
        metadata.insert("namespace".into(), key.namespace.as_str().into());
    }
    metadata.remove("managedFields");
    metadata.remove("selfLink");
}

/// Most built-in resources may be updated without a version; Leases and custom resources may not.
fn needs_version(collection: &Collection) -> bool {
    collection.is_lease() || collection.is_custom()
}

fn uid_conflict(key: &Key, asked: &str, found: &str) -> Refusal {
    let Key { collection, namespace, name } = key;
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{}/{namespace}/{name}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: UID in precondition: {asked}, UID in object meta: {found}",
        collection.resource,
    );
    Refusal::conflict(collection, name, &why)
}

/// The write of somebody who is not bound by the rules: no validation, the status too, whatever the version.
pub(super) fn overwrite(store: &mut Store, key: Key, mut object: Value) -> Arc<Object> {
    match store.get(&key) {
        Some(existing) => keep_identity(&key, &existing.value, &mut object),
        None => identify(store, &key, &mut object),
    }
    store.put(key, object)
}
