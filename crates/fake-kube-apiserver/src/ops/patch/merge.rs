//! JSON merge patch (RFC 7386).
//!
//! Not the crate `json-patch`: it would add three packages for these few lines.

use serde_json::{Map, Value};

/// Merges `patch` into `target`: `null` removes a member, any other value replaces it. The JSON parser bounds the
/// depth of the recursion.
pub(crate) fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            members.remove(&key);
        } else {
            merge(members.entry(key).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn examples_of_the_rfc() {
        for (target, patch, want) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [1]}), json!({"a": [2, 3]}), json!({"a": [2, 3]})),
            (json!({"a": "x"}), json!({"a": {"b": {"c": null}}}), json!({"a": {"b": {}}})),
        ] {
            let mut target = target;
            merge(&mut target, patch);
            assert_eq!(target, want);
        }
    }
}
