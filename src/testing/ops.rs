//! The operations on resources: what each verb does to the store.

use std::sync::Arc;

use serde_json::Value;

use super::body::Payload;
use super::changes::{bookmark, line};
use super::kinds::{has_status, known_kind};
use super::object::{Key, Object, text};
use super::options::{Continue, ListOptions, Match};
use super::path::{Collection, Target};
use super::request::RequestInfo;
use super::status::Refusal;
use super::store::Store;
use super::version::{asked_version, check_reachable};
use super::watch::WatchStart;
use super::{change, delete, patch, review};

/// What the server answers when it does not refuse.
#[derive(Debug)]
pub(super) enum Answer {
    Object(u16, Arc<Object>),
    List(List),
    Json(u16, Value),
    Watch(WatchStart),
}

#[derive(Debug)]
pub(super) struct List {
    pub(super) collection: Collection,
    pub(super) kind: String,
    pub(super) version: u64,
    pub(super) items: Vec<Arc<Object>>,
    /// The token for the next page, and, where it is known, how many objects are left.
    pub(super) more: Option<(String, Option<usize>)>,
}

/// Refuses what no resource, or not this one, answers to, whatever else the request says.
pub(super) fn check_route(info: &RequestInfo, target: &Target) -> Result<(), Refusal> {
    let Target { collection, namespace, name, subresource, legacy_watch } = target;
    // Other resources may be namespaced or not; of this one it is known.
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
            // The method decides under the old `/watch/` prefix too: nothing is written there.
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

/// Carries out a request on a resource; says what its client should be warned of.
pub(super) fn apply(
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
        (Payload::Read, _) if info.verb == "watch" => watch(store, info, target),
        (Payload::Read, Some(key)) => get(store, info, &key),
        (Payload::Read, None) => list(store, info, target),
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

fn get(store: &Store, info: &RequestInfo, key: &Key) -> Result<Answer, Refusal> {
    let version =
        asked_version(info.query.get("resourceVersion").unwrap_or_default()).map_err(Refusal::internal)?;
    check_reachable(version, store.version())?;
    let object = store.get(key).ok_or_else(|| Refusal::not_found(&key.collection, &key.name))?;
    Ok(Answer::Object(200, object))
}

fn collection_kind(store: &Store, collection: &Collection) -> String {
    known_kind(collection).or_else(|| store.kind_in(collection)).unwrap_or_default().to_owned()
}

/// Every list shows what there is now; a page of one begins where the last has ended.
fn list(store: &Store, info: &RequestInfo, target: &Target) -> Result<Answer, Refusal> {
    let options = ListOptions::parse(&target.collection, None, &info.query, false)?;
    let current = store.version();
    check_reachable(options.version, current)?;
    if options.matching == Match::Exact && store.changes.has_forgotten(options.version) {
        return Err(Refusal::list_expired());
    }
    let filter = options.filter(target);
    let mut found = store.list(&filter);
    if let Some(from) = &options.from {
        found.retain(|(key, _)| (&key.namespace, &key.name) > (&from.namespace, &from.name));
    }
    let version = options.from.as_ref().map_or(current, |it| it.version);
    let all = found.len();
    // What the selectors pass over counts, too: the real server does not look at it before it is asked for
    // more.
    let last = store.last(&filter);
    // Version 0 asks for the cache of the real server, which knows no pages.
    let full = options.limit > 0 && options.limit <= all && info.query.get("resourceVersion") != Some("0");
    if full {
        found.truncate(options.limit);
    }
    let more = found.last().filter(|(key, _)| full && last.is_some_and(|it| it > key)).map(
        |(Key { namespace, name, .. }, _)| {
            let next = Continue { version, namespace: namespace.clone(), name: name.clone() };
            let left = options.selector.is_empty().then(|| all - found.len());
            (next.token(), left)
        },
    );
    let items = found.into_iter().map(|(_, object)| object).collect();
    Ok(Answer::List(List { more, ..new_list(store, &target.collection, version, items) }))
}

fn new_list(store: &Store, collection: &Collection, version: u64, items: Vec<Arc<Object>>) -> List {
    let kind = format!("{}List", collection_kind(store, collection));
    List { collection: collection.clone(), kind, version, items, more: None }
}

pub(super) fn list_answer(
    store: &Store,
    collection: &Collection,
    version: u64,
    items: Vec<Arc<Object>>,
) -> Answer {
    Answer::List(new_list(store, collection, version, items))
}

fn watch(store: &mut Store, info: &RequestInfo, target: &Target) -> Result<Answer, Refusal> {
    let collection = &target.collection;
    let options = ListOptions::parse(collection, target.name.as_deref(), &info.query, true)?;
    let current = store.version();
    // The real server too answers 200 first and then sends the refusal as an event.
    let refused = |refusal: &Refusal| {
        let first = [line("ERROR", refusal.to_status().to_string().as_bytes())].into();
        Ok(Answer::Watch(WatchStart { first, live: None, bookmarks: None, timeout: None }))
    };
    if options.matching == Match::NotOlderThan
        && let Err(refusal) = check_reachable(options.version, current)
    {
        return refused(&refusal);
    }
    let filter = options.filter(target);
    let kind = collection_kind(store, collection);
    let initial = options.send_initial_events.unwrap_or(options.version == 0);
    let mut first = if initial {
        store.list(&filter).iter().map(|(_, object)| line("ADDED", &object.bytes)).collect()
    } else {
        let since = if options.version == 0 { current } else { options.version };
        match store.changes.since(&filter, since) {
            Ok(lines) => lines,
            Err(refusal) => return refused(&refusal),
        }
    };
    if initial && options.bookmarks {
        first.push_back(bookmark(collection, &kind, current, true));
    }
    let live = store.changes.subscribe(&info.user, filter);
    let bookmarks = options.bookmarks.then_some(kind);
    Ok(Answer::Watch(WatchStart { first, live: Some(live), bookmarks, timeout: options.timeout }))
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

/// An update says which object it means.
pub(super) fn check_name(target: &Target, object: &Value) -> Result<(), Refusal> {
    if text(object, "name").is_empty() {
        let in_path = target.name.as_deref().unwrap_or_default();
        return Err(Refusal::bad_request(format!(
            "the name of the object ({in_path} based on URL) was undeterminable: name must be provided"
        )));
    }
    Ok(())
}
