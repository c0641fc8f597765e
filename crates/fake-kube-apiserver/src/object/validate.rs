//! What the server refuses in a well-formed object: bad metadata, bad values of a Lease, bad values of a new Event.

use serde_json::Value;

use crate::cause::Cause;
use crate::object::event;
use crate::object::kinds::kind_of;
use crate::object::members::text;
use crate::object::names::{label_value, qualified, subdomain, subdomain_prefix};
use crate::path::Collection;
use crate::status::Refusal;

/// The limit on all annotations of an object together, in bytes.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

const IMMUTABLE: &str = "field is immutable";

/// Checks a new object, whose name has been generated.
pub(crate) fn created(collection: &Collection, object: &Value) -> Result<(), Refusal> {
    let mut causes = Vec::new();
    // Roles and bindings may have any name.
    let free = collection.group == "rbac.authorization.k8s.io";
    let named = [("metadata.generateName", "generateName"), ("metadata.name", "name")];
    for (field, member) in named.into_iter().filter(|_| !free) {
        let value = text(object, member);
        let wrong = match member {
            "name" => subdomain(value),
            _ if value.is_empty() => Vec::new(),
            _ => subdomain_prefix(value),
        };
        causes.extend(wrong.iter().map(|why| Cause::invalid(field, &value.into(), why)));
    }
    causes.extend(metadata(object));
    causes.extend(spec(collection, object));
    refuse(collection, object, &causes)?;
    event::created(collection, object)
}

/// Checks the next state of an object. The real server checks the metadata three times, and reports it as often.
pub(crate) fn updated(collection: &Collection, object: &Value, before: &Value) -> Result<(), Refusal> {
    let mut causes = metadata(object);
    let changed = changed(object, before);
    causes.extend(changed.clone());
    causes.extend(changed);
    causes.extend(spec(collection, object));
    refuse(collection, object, &causes)
}

/// The refusal of a new object with a uid.
pub(crate) fn uid_of_nothing(collection: &Collection, object: &Value) -> Refusal {
    let cause = Cause::invalid("metadata.uid", &object["metadata"]["uid"], IMMUTABLE);
    Refusal::invalid(&kind_of(collection, object), collection, text(object, "name"), &[cause])
}

fn refuse(collection: &Collection, object: &Value, causes: &[Cause]) -> Result<(), Refusal> {
    if causes.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid(&kind_of(collection, object), collection, text(object, "name"), causes))
}

fn metadata(object: &Value) -> Vec<Cause> {
    let metadata = &object["metadata"];
    let mut causes = Vec::new();
    if metadata["generation"].as_i64().is_some_and(|it| it < 0) {
        let why = "must be greater than or equal to 0";
        causes.push(Cause::invalid("metadata.generation", &metadata["generation"], why));
    }
    causes.extend(annotated(metadata));
    for finalizer in metadata["finalizers"].as_array().into_iter().flatten() {
        let wrong = qualified(finalizer.as_str().unwrap_or_default());
        causes.extend(wrong.iter().map(|why| Cause::invalid("metadata.finalizers", finalizer, why)));
    }
    causes
}

/// Checks labels, annotations and owners.
fn annotated(metadata: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        let field = "metadata.labels";
        let wrong_key = qualified(key);
        causes.extend(wrong_key.iter().map(|why| Cause::invalid(field, &key.as_str().into(), why)));
        let wrong_value = label_value(value.as_str().unwrap_or_default());
        causes.extend(wrong_value.iter().map(|why| Cause::invalid(field, value, why)));
    }
    let mut size = 0;
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        let wrong = qualified(&key.to_ascii_lowercase());
        causes.extend(
            wrong.iter().map(|why| Cause::invalid("metadata.annotations", &key.as_str().into(), why)),
        );
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_LIMIT {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS_LIMIT));
    }
    causes.extend(owned(&metadata["ownerReferences"]));
    causes
}

fn owned(references: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut controller: Option<String> = None;
    for reference in references.as_array().into_iter().flatten() {
        let said = |member: &str| reference[member].as_str().unwrap_or_default().to_owned();
        let api_version = said("apiVersion");
        let (_, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        if version.is_empty() || version.contains('/') {
            let field = "metadata.ownerReferences.apiVersion";
            causes.push(Cause::invalid(field, &api_version.as_str().into(), "version must not be empty"));
        }
        if (&*api_version, &*said("kind")) == ("v1", "Event") {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            causes.push(Cause::invalid("metadata.ownerReferences", reference, why));
        }
        for (field, member, why) in [
            ("metadata.ownerReferences.kind", "kind", "must not be empty"),
            ("metadata.ownerReferences.name", "name", "must not be empty"),
            ("metadata.ownerReferences.uid", "uid", "must not be empty"),
        ] {
            if said(member).is_empty() {
                causes.push(Cause::invalid(field, &"".into(), why));
            }
        }
        if reference["controller"] == true {
            let this = format!("{}/{}", said("kind"), said("name"));
            if let Some(first) = &controller {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} \
                     and {this}"
                );
                causes.push(Cause::invalid("metadata.ownerReferences", references, &why));
            }
            controller.get_or_insert(this);
        }
    }
    causes
}

/// Checks the members that an update must not change.
fn changed(object: &Value, before: &Value) -> Vec<Cause> {
    let (now, then) = (&object["metadata"], &before["metadata"]);
    let mut causes = Vec::new();
    if !then["deletionTimestamp"].is_null() {
        let held = |it: &Value| -> Vec<String> {
            let texts = it["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
            texts.map(|it| format!("\"{it}\"")).collect()
        };
        let old = held(then);
        let new: Vec<String> = held(now).into_iter().filter(|it| !old.contains(it)).collect();
        if !new.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                new.join(", ")
            );
            causes.push(Cause::forbidden("metadata.finalizers", &why));
        }
    }
    for (field, member) in [
        ("metadata.uid", "uid"),
        ("metadata.deletionTimestamp", "deletionTimestamp"),
        ("metadata.deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ] {
        if now[member] != then[member] {
            causes.push(Cause::invalid(field, &now[member], IMMUTABLE));
        }
    }
    causes.extend(annotated(now));
    causes
}

fn spec(collection: &Collection, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if collection.is_lease() {
        let spec = &object["spec"];
        for (field, member, least, why) in [
            ("spec.leaseDurationSeconds", "leaseDurationSeconds", 1, "must be greater than 0"),
            ("spec.leaseTransitions", "leaseTransitions", 0, "must be greater than or equal to 0"),
        ] {
            if spec[member].as_i64().is_some_and(|it| it < least) {
                causes.push(Cause::invalid(field, &spec[member], why));
            }
        }
    }
    causes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invalid_lease_gets_real_servers_error() {
        let leases = Collection {
            group: "coordination.k8s.io".into(),
            version: "v1".into(),
            resource: "leases".into(),
        };
        let lease = json!({
            "kind": "Lease", "metadata": {"name": "a"}, "spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1},
        });
        let refusal = created(&leases, &lease).unwrap_err();
        assert_eq!(refusal.code(), 422);
        assert_eq!(
            refusal.message(),
            "Lease.coordination.k8s.io \"a\" is invalid: [spec.leaseDurationSeconds: Invalid value: 0: must be greater \
             than 0, spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0]"
        );
    }
}
