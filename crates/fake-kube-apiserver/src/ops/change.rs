//! Create and update.

use std::sync::Arc;

use serde_json::Value;

use crate::cause::Cause;
use crate::object::kinds::kind_of;
use crate::object::members::{copy_member, has_finalizers, is_marked, members, metadata, text};
use crate::object::stored::{Key, Object};
use crate::object::version::parse_version;
use crate::object::{time, validate};
use crate::ops::answer::{Answer, check_name, check_place};
use crate::path::{Collection, Target};
use crate::status::Refusal;
use crate::store::Store;

pub(crate) fn create(
    store: &mut Store,
    target: &Target,
    mut object: Value,
    dry: bool,
) -> Result<Arc<Object>, Refusal> {
    let collection = &target.collection;
    check_place(target, &object)?;
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
    // A version that cannot be read counts as none.
    let version = parse_version(text(&object, "resourceVersion")).unwrap_or_default();
    members(&mut object).remove("status");
    identify(store, &key, &mut object);
    validate::created(collection, &object)?;
    if version != 0 {
        return Err(Refusal::version_on_create());
    }
    match store.get(&key) {
        Some(existing) if is_marked(&existing.value) => Err(Refusal::being_deleted(collection, &key.name)),
        Some(_) => Err(Refusal::already_exists(collection, &key.name)),
        None => Ok(if dry { Arc::new(Object::new(object)) } else { store.put(key, object) }),
    }
}

pub(crate) fn update(
    store: &mut Store,
    target: &Target,
    key: Key,
    object: Value,
    status: bool,
    dry: bool,
) -> Result<Answer, Refusal> {
    let collection = &target.collection;
    check_place(target, &object)?;
    check_name(target, &object)?;
    let existing = store.get(&key);
    // Of the resources that leader election uses, only a Lease may be created by a PUT.
    if existing.is_none() && (!collection.is_lease() || status) {
        return Err(Refusal::not_found(collection, &key.name));
    }
    let (uid, found) = (text(&object, "uid"), existing.as_ref().map_or("", |it| it.uid()));
    if !uid.is_empty() && uid != found {
        return Err(uid_conflict(&key, uid, found));
    }
    match existing {
        Some(existing) => replace(store, key, &existing, object, status, dry),
        None => create_by_update(store, target, object, dry),
    }
}

/// Creates the object of an update. The real server checks the uid here and ignores the version: a PUT with an old
/// version and no uid creates a deleted Lease again.
pub(crate) fn create_by_update(
    store: &mut Store,
    target: &Target,
    mut object: Value,
    dry: bool,
) -> Result<Answer, Refusal> {
    parse_version(text(&object, "resourceVersion")).map_err(Refusal::internal)?;
    metadata(&mut object).remove("resourceVersion");
    create(store, target, object, dry).map(|it| Answer::Object(201, it))
}

pub(crate) fn replace(
    store: &mut Store,
    key: Key,
    existing: &Arc<Object>,
    object: Value,
    status: bool,
    dry: bool,
) -> Result<Answer, Refusal> {
    let collection = &key.collection;
    match parse_version(text(&object, "resourceVersion")).map_err(Refusal::internal)? {
        0 if needs_version(collection) => {
            let cause =
                Cause::invalid("metadata.resourceVersion", &0.into(), "must be specified for an update");
            return Err(Refusal::invalid(&collection.resource, collection, &key.name, &[cause]));
        }
        0 => {}
        version if parse_version(existing.version()) != Ok(version) => {
            return Err(Refusal::stale(collection, &key.name));
        }
        _ => {}
    }
    let next = succeed(&key, &existing.value, object, status);
    validate::updated(collection, &next, &existing.value)?;
    if is_marked(&existing.value) && !has_finalizers(&next) {
        // No finalizer holds the object any more.
        if !dry {
            store.remove(key);
        }
        return Ok(Answer::Object(200, Arc::new(Object::new(next))));
    }
    if next == existing.value {
        // An update that changes nothing makes no version and no event.
        return Ok(Answer::Object(200, Arc::clone(existing)));
    }
    Ok(Answer::Object(200, if dry { Arc::new(Object::new(next)) } else { store.put(key, next) }))
}

/// The next state of an object: `/status` changes only the status, the main endpoint all but the status.
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

/// Keeps the members that no write changes: kind, name, namespace, creation time, generation, the marks of a deletion,
/// and the version until the object is stored. A uid in the body must be the right one.
pub(crate) fn keep_identity(key: &Key, existing: &Value, next: &mut Value) {
    for member in ["apiVersion", "kind"] {
        copy_member(members(next), existing, member);
    }
    let metadata = metadata(next);
    let before = &existing["metadata"];
    for member in ["creationTimestamp", "resourceVersion", "generation"] {
        copy_member(metadata, before, member);
    }
    for member in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if !metadata.contains_key(member) || member == "deletionTimestamp" && !before[member].is_null() {
            copy_member(metadata, before, member);
        }
    }
    place(key, next);
}

/// Sets the members that the server owns in a new object, and removes those that a client must not set.
pub(crate) fn identify(store: &mut Store, key: &Key, object: &mut Value) {
    let kind = kind_of(&key.collection, object);
    let members = members(object);
    members.insert("apiVersion".into(), key.collection.api_version().into());
    members.insert("kind".into(), kind.into());
    let metadata = metadata(object);
    metadata.insert("uid".into(), store.ids.uid().into());
    metadata.insert("creationTimestamp".into(), time::now().into());
    for member in ["resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        metadata.remove(member);
    }
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

/// Whether an update needs a version. Leases and custom resources do, most built-in resources do not.
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

/// Writes an object for a test, without any check: the status too, and over any version.
pub(crate) fn overwrite(store: &mut Store, key: Key, mut object: Value) -> Arc<Object> {
    match store.get(&key) {
        Some(existing) => {
            metadata(&mut object).remove("uid");
            keep_identity(&key, &existing.value, &mut object);
        }
        None => identify(store, &key, &mut object),
    }
    store.put(key, object)
}
