//! The parts of an answer that are compared, without values that each server makes up.

use http::HeaderMap;
use serde_json::{Map, Value, json};

/// The headers that clients act on.
const HEADERS: [&str; 5] = ["content-type", "retry-after", "warning", "allow", "www-authenticate"];

/// Text after which a parser's words begin.
const PARSERS: [&str; 8] = [
    "json parse error: ",
    "json: cannot unmarshal ",
    " cannot be handled as a ",
    " is registered for version ",
    "error decoding patch: ",
    "error decoding YAML: ",
    "patch: Invalid value: ",
    "continue key is not valid: ",
];

/// After these words comes a version of the whole server.
const CURRENT: [&str; 2] =
    ["Too large resource version: 99999999, current: ", "too old resource version: 1 ("];

/// The uids and versions that one server has shown in a scene, in their order: the third version of one
/// server is the third of the other.
#[derive(Debug, Default)]
pub struct Names {
    uids: Vec<String>,
    versions: Vec<String>,
}

/// The head of an answer.
pub fn head(status: u16, headers: &HeaderMap) -> Value {
    let shown = |name: &str| {
        let mut all: Vec<_> =
            headers.get_all(name).iter().map(|it| String::from_utf8_lossy(it.as_bytes())).collect();
        all.sort();
        (!all.is_empty()).then(|| (name.to_owned(), Value::from(all.join(", "))))
    };
    json!({ "status": status, "headers": HEADERS.into_iter().filter_map(shown).collect::<Map<_, _>>() })
}

// === impl Names ===

impl Names {
    /// A whole body: an object, the events of a watch, or a text.
    pub fn body(&mut self, body: &[u8]) -> Value {
        let Ok(text) = std::str::from_utf8(body) else {
            return "no text".into();
        };
        if text.starts_with("{\"type\":") {
            return text.lines().filter_map(|it| self.event(it.as_bytes())).collect();
        }
        match serde_json::from_str(text) {
            Ok(mut value) => {
                self.object(&mut value);
                value
            }
            Err(_) => text.into(),
        }
    }

    /// One line of a stream. `None` for a bookmark that the server's own clock sent.
    pub fn event(&mut self, line: &[u8]) -> Option<Value> {
        let Ok(mut value) = serde_json::from_slice::<Value>(line) else {
            return Some(String::from_utf8_lossy(line).into());
        };
        let bookmark = value["type"] == "BOOKMARK";
        let Some(object) = value.get_mut("object") else {
            // The stream was not a watch.
            self.object(&mut value);
            return Some(value);
        };
        if bookmark {
            if object["metadata"]["annotations"].is_null() {
                return None;
            }
            object["metadata"]["resourceVersion"] = "VERSION".into();
        }
        self.object(object);
        Some(value)
    }

    fn object(&mut self, value: &mut Value) {
        if let Some(items) = value.get_mut("items").and_then(Value::as_array_mut) {
            for item in items {
                self.object(item);
            }
            // The version of a list is the server's. Other scenes change it.
            for member in ["resourceVersion", "continue"] {
                if let Some(text) = value["metadata"].get_mut(member) {
                    *text = member.to_uppercase().into();
                }
            }
        }
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            self.metadata(metadata);
        }
        if value["kind"] == "Status" {
            self.status(value);
        }
    }

    fn metadata(&mut self, metadata: &mut Map<String, Value>) {
        metadata.remove("managedFields");
        if let Some(uid) = metadata.get_mut("uid") {
            name(uid, "uid", &mut self.uids);
        }
        let number = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
        if let Some(version) =
            metadata.get_mut("resourceVersion").filter(|it| it.as_str().is_some_and(number))
        {
            name(version, "version", &mut self.versions);
        }
        for member in ["creationTimestamp", "deletionTimestamp"] {
            if let Some(time) = metadata.get_mut(member)
                && time.as_str().is_some_and(|it| it.parse::<jiff::Timestamp>().is_ok())
            {
                *time = "TIME".into();
            }
        }
        if let Some(prefix) = metadata.get("generateName").and_then(Value::as_str).map(str::to_owned)
            && let Some(Value::String(name)) = metadata.get_mut("name")
            && let Some(rest) = name.strip_prefix(&prefix)
        {
            *name = format!("{prefix}<{} characters>", rest.len());
        }
    }

    fn status(&mut self, status: &mut Value) {
        if let Some(uid) = status["details"].get_mut("uid") {
            name(uid, "uid", &mut self.uids);
        }
        self.words(&mut status["message"]);
        for cause in status["details"].get_mut("causes").and_then(Value::as_array_mut).into_iter().flatten() {
            self.words(&mut cause["message"]);
            if cause["field"] == "patch" {
                // First the whole object, then a parser.
                cause["message"] = "OBJECT".into();
            }
        }
    }

    /// Replaces the uids and versions in a sentence by names, and removes the text of a parser.
    fn words(&self, text: &mut Value) {
        let Value::String(text) = text else { return };
        for (index, uid) in self.uids.iter().enumerate() {
            *text = text.replace(uid.as_str(), &format!("uid-{index}"));
        }
        for (index, version) in self.versions.iter().enumerate() {
            // Not every equal number is a version.
            for (before, behind) in [("(", ")"), ("\"", " \"")] {
                let name = format!("{before}version-{index}{behind}");
                *text = text.replace(&format!("{before}{version}{behind}"), &name);
            }
        }
        for (begins, more) in PARSERS.map(|it| (it, false)).into_iter().chain(CURRENT.map(|it| (it, true))) {
            if let Some((before, behind)) = text.split_once(begins) {
                let behind = behind.trim_start_matches(|it: char| it.is_ascii_digit());
                *text = format!("{before}{begins}{}", if more { behind } else { "…" });
            }
        }
    }
}

fn name(value: &mut Value, kind: &str, known: &mut Vec<String>) {
    let Some(text) = value.as_str() else { return };
    let index = known.iter().position(|it| it == text).unwrap_or_else(|| {
        known.push(text.to_owned());
        known.len() - 1
    });
    *value = format!("{kind}-{index}").into();
}
