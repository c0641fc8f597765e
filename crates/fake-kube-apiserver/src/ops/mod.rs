//! The operations on resources: what each verb does.

pub(crate) mod answer;
pub(crate) mod change;
mod delete;
mod patch;
mod read;
mod review;

use crate::object::kinds::has_status;
use crate::object::stored::Key;
use crate::ops::answer::Answer;
use crate::path::Target;
use crate::request::RequestInfo;
use crate::request::body::Payload;
use crate::status::Refusal;
use crate::store::Store;

/// Refuses a path or method that the resource does not have.
pub(crate) fn check_route(info: &RequestInfo, target: &Target) -> Result<(), Refusal> {
    let Target { collection, namespace, name, subresource, legacy_watch } = target;
    // Only of the Lease the server knows that it is namespaced.
    let placed = namespace.is_some() || !collection.is_lease();
    let method = info.method.as_str();
    let allowed = if review::is_review(collection) {
        if name.is_some() {
            return Err(Refusal::no_such_path());
        }
        method == "POST"
    } else {
        match subresource.as_deref() {
            None if placed || name.is_none() => {}
            Some("status") if has_status(collection) => {}
            _ => return Err(Refusal::no_such_path()),
        }
        match (method, name) {
            ("GET", _) => true,
            // The old `/watch/` prefix accepts no writes.
            _ if *legacy_watch => false,
            ("POST" | "DELETE", None) => placed,
            ("PUT" | "PATCH", Some(_)) => true,
            ("DELETE", Some(_)) => subresource.is_none(),
            _ => false,
        }
    };
    if !allowed {
        return Err(Refusal::method_not_allowed());
    }
    Ok(())
}

/// Carries out a request on a resource. Adds warnings for the client.
pub(crate) fn apply(
    store: &mut Store,
    info: &RequestInfo,
    target: &Target,
    payload: Payload,
    warnings: &mut Vec<String>,
) -> Result<Answer, Refusal> {
    let Target { collection, name, subresource, .. } = target;
    let status = subresource.is_some();
    let key = name.as_ref().map(|name| Key {
        collection: collection.clone(),
        namespace: target.namespace.clone().unwrap_or_default(),
        name: name.clone(),
    });
    match (payload, key) {
        (Payload::Read, _) if info.verb == "watch" => read::watch(store, info, target),
        (Payload::Read, Some(key)) => read::get(store, info, &key),
        (Payload::Read, None) => read::list(store, info, target),
        (Payload::Object { decoded, options }, key) => {
            let existing = key.as_ref().and_then(|it| store.get(it));
            let (object, unknown) = decoded
                .validated(collection, options.validation, existing.as_ref().map(|it| &it.value))
                .map_err(|why| why.refusal(collection, &[]))?;
            warnings.extend(unknown);
            match key {
                None if review::is_review(collection) => review::answer(target, &info.user, object),
                None => change::create(store, target, object, options.dry).map(|it| Answer::Object(201, it)),
                Some(key) => change::update(store, target, key, object, status, options.dry),
            }
        }
        (Payload::Patch { kind, bytes, options }, Some(key)) => {
            patch::patch(store, target, key, (kind, &bytes), status, &options, warnings)
        }
        (Payload::Delete(options), Some(key)) => delete::delete(store, key, &options),
        (Payload::Delete(options), None) => delete::delete_collection(store, info, target, &options),
        (Payload::Patch { .. }, None) => Err(Refusal::method_not_allowed()),
    }
}
