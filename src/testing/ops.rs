//! The operations on resources: what each verb does to the store.

use std::sync::Arc;

use serde_json::{Value, json};

use super::body::{Payload, Precondition};
use super::changes::{Filter, bookmark, line};
use super::kinds::known_kind;
use super::object::{Key, Object, text};
use super::options::ListOptions;
use super::path::{Collection, Target};
use super::request::RequestInfo;
use super::status::Refusal;
use super::store::Store;
use super::watch::WatchStart;
use super::{change, review};

/// What the server answers when it does not refuse.
#[derive(Debug)]
pub(super) enum Answer {
    Object(u16, Arc<Object>),
    List { kind: String, api_version: String, version: u64, items: Vec<Arc<Object>> },
    Json(u16, Value),
    Watch(WatchStart),
}

/// Carries out a request on a resource.
pub(super) fn apply(
    store: &mut Store,
    info: &RequestInfo,
    target: &Target,
    payload: Payload,
    dry: bool,
) -> Result<Answer, Refusal> {
    let Target { collection, name, subresource, .. } = target;
    if review::is_review(collection) {
        if info.method == http::Method::POST && name.is_none() {
            return review::answer(collection, &info.user, payload.value);
        }
        return Err(Refusal::method_not_allowed());
    }
    let status = match subresource.as_deref() {
        None => false,
        Some("status") => true,
        Some(_) => return Err(Refusal::no_such_path()),
    };
    let key = name.as_ref().map(|name| Key {
        collection: collection.clone(),
        namespace: target.namespace.clone().unwrap_or_default(),
        name: name.clone(),
    });
    match (info.method.as_str(), key) {
        ("GET", _) if info.verb == "watch" => watch(store, info, target),
        ("GET", Some(key)) => {
            let object = store.get(&key).ok_or_else(|| Refusal::not_found(collection, &key.name))?;
            Ok(Answer::Object(200, object))
        }
        ("GET", None) => list(store, info, target),
        // The method decides under the old `/watch/` prefix too: nothing is written there.
        _ if target.legacy_watch => Err(Refusal::method_not_allowed()),
        ("POST", None) => change::create(store, target, payload.value, dry).map(|it| Answer::Object(201, it)),
        ("PUT", Some(key)) => change::update(store, target, key, payload.value, status, dry),
        ("PATCH", Some(key)) => change::patch(store, target, key, payload, status, dry),
        ("DELETE", Some(key)) if !status => delete(store, key, &payload.precondition(), dry),
        ("DELETE", None) => delete_collection(store, info, target, dry),
        _ => Err(Refusal::method_not_allowed()),
    }
}

fn filter(target: &Target, options: &ListOptions) -> Filter {
    Filter {
        collection: target.collection.clone(),
        namespace: target.namespace.clone(),
        selector: options.selector.clone(),
    }
}

fn collection_kind(store: &Store, collection: &Collection) -> String {
    known_kind(collection).or_else(|| store.kind_in(collection)).unwrap_or_default().to_owned()
}

fn list(store: &Store, info: &RequestInfo, target: &Target) -> Result<Answer, Refusal> {
    let options = ListOptions::parse(&target.collection, None, &info.query, false)?;
    let version = store.version();
    if options.version > version {
        return Err(Refusal::version_too_large(options.version, version));
    }
    let items = store.list(&filter(target, &options)).into_iter().map(|(_, object)| object).collect();
    Ok(list_answer(store, &target.collection, version, items))
}

fn list_answer(store: &Store, collection: &Collection, version: u64, items: Vec<Arc<Object>>) -> Answer {
    let kind = format!("{}List", collection_kind(store, collection));
    Answer::List { kind, api_version: collection.api_version(), version, items }
}

fn watch(store: &mut Store, info: &RequestInfo, target: &Target) -> Result<Answer, Refusal> {
    let collection = &target.collection;
    let options = ListOptions::parse(collection, target.name.as_deref(), &info.query, true)?;
    let current = store.version();
    if options.not_older_than && options.version > current {
        return Err(Refusal::version_too_large(options.version, current));
    }
    let filter = filter(target, &options);
    let kind = collection_kind(store, collection);
    let initial = options.send_initial_events.unwrap_or(options.version == 0);
    let mut first = if initial {
        store.list(&filter).iter().map(|(_, object)| line("ADDED", &object.bytes)).collect()
    } else {
        let since = if options.version == 0 { current } else { options.version };
        match store.changes.since(&filter, since) {
            Ok(lines) => lines,
            // The real server too answers 200 first and then sends the refusal as an event.
            Err(refusal) => {
                let error = line("ERROR", refusal.to_status().to_string().as_bytes());
                let first = [error].into();
                return Ok(Answer::Watch(WatchStart { first, live: None, bookmarks: None, timeout: None }));
            }
        }
    };
    if options.send_initial_events == Some(true) && options.bookmarks {
        first.push_back(bookmark(collection, &kind, current, true));
    }
    let live = store.changes.subscribe(&info.user, filter);
    let bookmarks = options.bookmarks.then_some(kind);
    Ok(Answer::Watch(WatchStart { first, live: Some(live), bookmarks, timeout: options.timeout }))
}

fn delete(store: &mut Store, key: Key, wanted: &Precondition, dry: bool) -> Result<Answer, Refusal> {
    let Key { collection, name, .. } = &key;
    let object = store.get(&key).ok_or_else(|| Refusal::not_found(collection, name))?;
    let (uid, version) = (object.uid(), object.version());
    if let Some(asked) = wanted.uid.as_deref().filter(|it| *it != uid) {
        let why = format!(
            "the UID in the precondition ({asked}) does not match the UID in record ({uid}). \
             The object might have been deleted and then recreated"
        );
        return Err(Refusal::conflict(collection, name, &why));
    }
    if let Some(asked) = wanted.version.as_deref().filter(|it| *it != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record \
             ({version}). The object might have been modified"
        );
        return Err(Refusal::conflict(collection, name, &why));
    }
    let mut details = json!({ "name": name, "kind": collection.resource, "uid": uid });
    if !collection.group.is_empty() {
        details["group"] = collection.group.as_str().into();
    }
    if !dry {
        store.remove(key);
    }
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
    });
    Ok(Answer::Json(200, status))
}

fn delete_collection(
    store: &mut Store,
    info: &RequestInfo,
    target: &Target,
    dry: bool,
) -> Result<Answer, Refusal> {
    let options = ListOptions::parse(&target.collection, None, &info.query, false)?;
    let found = store.list(&filter(target, &options));
    let mut items = Vec::with_capacity(found.len());
    for (key, object) in found {
        items.push(if dry { object } else { store.remove(key).unwrap_or(object) });
    }
    Ok(list_answer(store, &target.collection, store.version(), items))
}

/// The name and namespace in the body must not contradict the path.
pub(super) fn check_place(target: &Target, object: &Value) -> Result<(), Refusal> {
    let (name, namespace) = (text(object, "name"), text(object, "namespace"));
    if let Some(in_path) = target.name.as_deref()
        && !name.is_empty()
        && name != in_path
    {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({in_path})"
        )));
    }
    if !namespace.is_empty() && target.namespace.as_deref() != Some(namespace) {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Refusal::bad_request(why));
    }
    Ok(())
}
