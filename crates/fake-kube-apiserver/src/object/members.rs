//! Access to the members of an object.

use serde_json::{Map, Value};

/// A string of `metadata`. Empty if it is absent or no string.
pub(crate) fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    object["metadata"][member].as_str().unwrap_or_default()
}

/// The `metadata` of an object. An absent one, or one that is no object, becomes an empty object.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    let metadata = members(object).entry("metadata").or_insert(Value::Null);
    members(metadata)
}

/// The members of a value. A value that is no object becomes an empty object.
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

/// Copies the member from `from`, or removes it if `from` has none.
pub(crate) fn copy_member(to: &mut Map<String, Value>, from: &Value, member: &str) {
    match from.get(member) {
        Some(value) => to.insert(member.into(), value.clone()),
        None => to.remove(member),
    };
}

pub(crate) fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|it| !it.is_empty())
}

/// Whether a client has deleted the object, and finalizers still hold it.
pub(crate) fn is_marked(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}
