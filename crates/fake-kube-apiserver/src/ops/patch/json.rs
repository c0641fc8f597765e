//! JSON patch (RFC 6902).
//!
//! Not the crate `json-patch`: it refuses to `replace` a missing member, or to `test` one for `null`, which Kubernetes'
//! library accepts. Nor does it limit what `copy` adds.

use serde_json::Value;

use crate::request::body::BODY_LIMIT;

/// The depth that the JSON parser allows.
const DEPTH_LIMIT: usize = 127;

/// Applies all operations, or none. Returns none if one is malformed, cannot be applied to the object, or would make
/// it larger or deeper than a body may be.
pub(crate) fn apply(target: &Value, operations: &[Value]) -> Option<Value> {
    let mut patched = target.clone();
    let mut copied = 0;
    for operation in operations {
        let path = operation["path"].as_str()?;
        // As in Go, a missing value is null.
        let value = || operation["value"].clone();
        let from = || operation["from"].as_str();
        match operation["op"].as_str()? {
            "add" => add(&mut patched, path, value())?,
            "remove" => drop(remove(&mut patched, path)?),
            "replace" => replace(&mut patched, path, value())?,
            "move" => {
                let moved = remove(&mut patched, from()?)?;
                add(&mut patched, path, moved)?;
            }
            "copy" => {
                let value = patched.pointer(from()?)?.clone();
                copied += value.to_string().len();
                (copied <= BODY_LIMIT).then_some(())?;
                add(&mut patched, path, value)?;
            }
            "test" => {
                let found = patched.pointer(path).unwrap_or(&Value::Null);
                (*found == value()).then_some(())?;
            }
            _ => return None,
        }
    }
    Some(patched)
}

/// Splits a pointer into the parent's pointer and its last part, unescaped.
fn split(path: &str) -> Option<(&str, String)> {
    let (parent, last) = path.rsplit_once('/')?;
    Some((parent, last.replace("~1", "/").replace("~0", "~")))
}

fn add(target: &mut Value, path: &str, value: Value) -> Option<()> {
    if path.is_empty() {
        *target = value;
        return Some(());
    }
    let (parent, last) = split(path)?;
    fits(path, &value).then_some(())?;
    match target.pointer_mut(parent)? {
        Value::Object(members) => {
            members.insert(last, value);
        }
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let index: usize = last.parse().ok()?;
            (index <= items.len()).then(|| items.insert(index, value))?;
        }
        _ => return None,
    }
    Some(())
}

/// Replaces a value. Like the real server, adds a missing member, but not a missing item of a list.
fn replace(target: &mut Value, path: &str, value: Value) -> Option<()> {
    fits(path, &value).then_some(())?;
    if let Some(found) = target.pointer_mut(path) {
        *found = value;
        return Some(());
    }
    let (parent, last) = split(path)?;
    target.pointer_mut(parent)?.as_object_mut()?.insert(last, value);
    Some(())
}

fn fits(path: &str, value: &Value) -> bool {
    path.matches('/').count() + depth(value) <= DEPTH_LIMIT
}

/// How deep a value is. The recursion is bounded, since every value here fits.
fn depth(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

fn remove(target: &mut Value, path: &str) -> Option<Value> {
    let (parent, last) = split(path)?;
    match target.pointer_mut(parent)? {
        Value::Object(members) => members.remove(&last),
        Value::Array(items) => {
            let index: usize = last.parse().ok()?;
            (index < items.len()).then(|| items.remove(index))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patch_never_grows_beyond_body_limit() {
        let mut object = json!({ "a": {} });
        let copy = json!({ "op": "copy", "from": "/a", "path": "/a/a" });
        while let Some(deeper) = apply(&object, std::slice::from_ref(&copy)) {
            object = deeper;
        }
        assert!((64..=DEPTH_LIMIT).contains(&depth(&object)));
        let object = json!({ "a": "v".repeat(1_000_000), "l": [] });
        let copy = json!({ "op": "copy", "from": "/a", "path": "/l/-" });
        assert!(apply(&object, &vec![copy.clone(); 3]).is_some());
        assert!(apply(&object, &vec![copy; 4]).is_none());
    }

    #[test]
    fn operations() {
        let object = json!({ "a": { "b": 1, "c/d": 2 }, "l": [1, 2] });
        for (operation, want) in [
            (
                json!({"op": "add", "path": "/a/e", "value": 3}),
                Some(json!({"a": {"b": 1, "c/d": 2, "e": 3}, "l": [1, 2]})),
            ),
            (
                json!({"op": "add", "path": "/l/1", "value": 3}),
                Some(json!({"a": {"b": 1, "c/d": 2}, "l": [1, 3, 2]})),
            ),
            (
                json!({"op": "add", "path": "/l/-", "value": 3}),
                Some(json!({"a": {"b": 1, "c/d": 2}, "l": [1, 2, 3]})),
            ),
            (json!({"op": "add", "path": "/l/9", "value": 3}), None),
            (json!({"op": "add", "path": "", "value": 3}), Some(json!(3))),
            (json!({"op": "add", "path": "/no/e", "value": 3}), None),
            (json!({"op": "remove", "path": "/a/c~1d"}), Some(json!({"a": {"b": 1}, "l": [1, 2]}))),
            (json!({"op": "remove", "path": "/a/z"}), None),
            (json!({"op": "remove", "path": ""}), None),
            (
                json!({"op": "replace", "path": "/a/b", "value": 9}),
                Some(json!({"a": {"b": 9, "c/d": 2}, "l": [1, 2]})),
            ),
            (
                json!({"op": "replace", "path": "/a/z", "value": 9}),
                Some(json!({"a": {"b": 1, "c/d": 2, "z": 9}, "l": [1, 2]})),
            ),
            (json!({"op": "replace", "path": "/l/2", "value": 9}), None),
            (json!({"op": "replace", "path": "/z/z", "value": 9}), None),
            (
                json!({"op": "move", "from": "/a/b", "path": "/l/0"}),
                Some(json!({"a": {"c/d": 2}, "l": [1, 1, 2]})),
            ),
            (
                json!({"op": "copy", "from": "/l/1", "path": "/a/b"}),
                Some(json!({"a": {"b": 2, "c/d": 2}, "l": [1, 2]})),
            ),
            (json!({"op": "test", "path": "/a/b", "value": 1}), Some(object.clone())),
            (json!({"op": "test", "path": "/a/b", "value": 2}), None),
            (json!({"op": "what", "path": "/a"}), None),
            (json!({"op": "add"}), None),
            (json!(7), None),
        ] {
            assert_eq!(apply(&object, std::slice::from_ref(&operation)), want, "{operation}");
        }
    }
}
