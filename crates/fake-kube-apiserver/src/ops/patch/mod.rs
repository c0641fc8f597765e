//! Patch: from the existing object to the next one.

mod json;
mod merge;

use serde_json::Value;

use crate::object::kinds::known_kind;
use crate::object::members::text;
use crate::object::stored::Key;
use crate::object::{decode, validate};
use crate::ops::answer::{Answer, check_name, check_place};
use crate::ops::change::{create_by_update, replace};
use crate::ops::patch::merge::merge;
use crate::path::{Collection, Target};
use crate::request::negotiate::PatchKind;
use crate::request::write::WriteOptions;
use crate::status::Refusal;
use crate::store::Store;

pub(crate) fn patch(
    store: &mut Store,
    target: &Target,
    key: Key,
    (kind, bytes): (PatchKind, &[u8]),
    status: bool,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Answer, Refusal> {
    let collection = &target.collection;
    let existing = store.get(&key);
    let current = existing.as_ref().map(|it| &it.value);
    let object = match (kind, current) {
        (PatchKind::Apply, _) if current.is_some() || !status => applied(collection, current, bytes)?,
        (PatchKind::Merge, Some(current)) => merged(current, bytes)?,
        (PatchKind::Json, Some(current)) => operated(current, bytes)?,
        (_, None) | (PatchKind::Apply, _) => return Err(Refusal::not_found(collection, &key.name)),
    };
    let decoded = decode::decode(collection, object.clone())
        .and_then(|it| it.validated(collection, options.validation, current))
        .map_err(|why| Refusal::invalid_patch(&object, &why.to_string()))?;
    let (object, unknown) = decoded;
    warnings.extend(unknown);
    check_place(target, &object)?;
    check_name(target, &object)?;
    match existing {
        Some(existing) => replace(store, key, &existing, object, status, options.dry),
        None if !text(&object, "uid").is_empty() => Err(validate::uid_of_nothing(collection, &object)),
        None => create_by_update(store, target, object, options.dry),
    }
}

fn merged(current: &Value, bytes: &[u8]) -> Result<Value, Refusal> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Null) => Err(Refusal::bad_request("Invalid JSON Patch")),
        Ok(patch @ Value::Object(_)) => {
            let mut object = current.clone();
            merge(&mut object, patch);
            Ok(object)
        }
        Ok(_) => Err(undecodable("it is not an object")),
        Err(error) => Err(undecodable(&error.to_string())),
    }
}

fn operated(current: &Value, bytes: &[u8]) -> Result<Value, Refusal> {
    let operations: Vec<Value> =
        serde_json::from_slice(bytes).map_err(|error| undecodable(&error.to_string()))?;
    if !operations.iter().all(Value::is_object) {
        return Err(undecodable("an operation is not an object"));
    }
    json::apply(current, &operations).ok_or_else(Refusal::inapplicable_patch)
}

/// Merges an apply patch into the object, since this server keeps no field owners. The patch must have a kind, and no
/// member that the kind does not know.
fn applied(collection: &Collection, current: Option<&Value>, bytes: &[u8]) -> Result<Value, Refusal> {
    let wrong = |why: &str| Refusal::bad_request(format!("error decoding YAML: {why}"));
    let patch: Value = serde_json::from_slice(bytes).map_err(|error| wrong(&error.to_string()))?;
    if !patch.is_object() {
        return Err(wrong("it is not an object"));
    }
    let said = |member: &str| patch[member].as_str().unwrap_or_default();
    let (api_version, kind) = (said("apiVersion"), said("kind"));
    let grouped = if api_version.contains('/') { api_version.to_owned() } else { format!("/{api_version}") };
    if api_version != collection.api_version()
        || kind.is_empty()
        || known_kind(collection).is_some_and(|it| it != kind)
    {
        return Err(Refusal::bad_request(format!("invalid object type: {grouped}, Kind={kind}")));
    }
    if !patch["metadata"]["managedFields"].is_null() {
        return Err(Refusal::bad_request("metadata.managedFields must be nil"));
    }
    if text(&patch, "name").is_empty() {
        return Ok(Value::Null);
    }
    let mistyped = match decode::decode(collection, patch.clone()) {
        Ok(decoded) => decoded.first_unknown().map(|it| format!(".{it}: field not declared in schema")),
        Err(why) => Some(why.to_string()),
    };
    if let Some(why) = mistyped {
        let (namespace, name) = (text(&patch, "namespace"), text(&patch, "name"));
        let object = format!("{namespace}/{name}; {grouped}, Kind={kind}");
        return Err(Refusal::internal(format!("failed to create typed patch object ({object}): {why}")));
    }
    let mut object = current.cloned().unwrap_or_default();
    merge(&mut object, patch);
    Ok(object)
}

fn undecodable(why: &str) -> Refusal {
    Refusal::bad_request(format!("error decoding patch: {why}"))
}
