//! The members of an object that the server minds.

use serde_json::{Map, Value};

/// A string of `metadata`; empty when it is absent or something else.
pub(crate) fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    object["metadata"][member].as_str().unwrap_or_default()
}

/// The `metadata` of an object, made when it is absent or not an object.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    let metadata = members(object).entry("metadata").or_insert(Value::Null);
    members(metadata)
}

/// The members of a value, which becomes an object when it is something else.
pub(crate) fn members(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(members) => members,
        _ => unreachable!("made an object just above"),
    }
}

pub(crate) fn set_version(object: &mut Value, version: u64) {
    metadata(object).insert("resourceVersion".into(), version.to_string().into());
}

/// Takes `from`'s member, or removes it.
pub(crate) fn copy_member(to: &mut Map<String, Value>, from: &Value, member: &str) {
    match from.get(member) {
        Some(value) => to.insert(member.into(), value.clone()),
        None => to.remove(member),
    };
}

pub(crate) fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|it| !it.is_empty())
}

/// Whether the deletion of the object has begun.
pub(crate) fn is_marked(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}
