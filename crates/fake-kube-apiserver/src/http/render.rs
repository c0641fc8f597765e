//! Objects, lists and events as bytes, in the form that the client accepts.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};

use crate::object::members::members;
use crate::object::stored::Object;
use crate::ops::answer::List;
use crate::request::negotiate::Form;
use crate::store::piece;

pub(crate) fn object(object: &Object, form: Form) -> Bytes {
    match form {
        Form::Whole => object.bytes.clone(),
        Form::Metadata | Form::MetadataList => metadata_alone(&object.value).to_string().into(),
    }
}

pub(crate) fn list(list: &List, form: Form) -> Bytes {
    let mut metadata = json!({ "resourceVersion": list.version.to_string() });
    if let Some((token, left)) = &list.more {
        metadata["continue"] = token.as_str().into();
        if let Some(left) = left {
            metadata["remainingItemCount"] = (*left).into();
        }
    }
    let api_version = list.collection.api_version();
    let (kind, api_version) = match form {
        Form::Whole => (list.kind.as_str(), api_version.as_str()),
        Form::Metadata | Form::MetadataList => ("PartialObjectMetadataList", "meta.k8s.io/v1"),
    };
    let head = format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{metadata},"items":"#);
    if form != Form::Whole && list.items.is_empty() {
        // Like the real server.
        return format!("{head}null}}").into();
    }
    let size = list.items.iter().map(|it| it.bytes.len() + 1).sum::<usize>();
    let mut text = BytesMut::with_capacity(head.len() + size + 3);
    text.put_slice(head.as_bytes());
    text.put_u8(b'[');
    for (index, item) in list.items.iter().enumerate() {
        if index > 0 {
            text.put_u8(b',');
        }
        if form == Form::Whole && !list.collection.is_custom() {
            text.put_slice(untyped(&item.value).to_string().as_bytes());
        } else {
            text.put_slice(&object(item, form));
        }
    }
    text.put_slice(b"]}");
    text.freeze()
}

/// A line of a watch. An error, and a line that a fault has broken, are the same in each form.
pub(crate) fn event(line: Bytes, form: Form) -> Bytes {
    if form == Form::Whole {
        return line;
    }
    match serde_json::from_slice::<Value>(&line) {
        Ok(event) if event["type"] != "ERROR" => {
            let kind = event["type"].as_str().unwrap_or_default();
            piece::line(kind, metadata_alone(&event["object"]).to_string().as_bytes())
        }
        _ => line,
    }
}

/// An item of a list of a built-in kind, without the kind that the list itself says.
fn untyped(object: &Value) -> Value {
    let mut object = object.clone();
    let members = members(&mut object);
    members.remove("kind");
    members.remove("apiVersion");
    object
}

fn metadata_alone(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
    })
}
