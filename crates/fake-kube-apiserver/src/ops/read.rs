//! The reads: get, list and watch.

use crate::object::stored::Key;
use crate::object::version::{asked_version, check_reachable};
use crate::ops::answer::{Answer, List, WatchStart, collection_kind, new_list};
use crate::path::Target;
use crate::request::RequestInfo;
use crate::request::list::{Continue, ListOptions, Match};
use crate::status::Refusal;
use crate::store::Store;
use crate::store::piece::{bookmark, line};

pub(crate) fn get(store: &Store, info: &RequestInfo, key: &Key) -> Result<Answer, Refusal> {
    let version =
        asked_version(info.query.get("resourceVersion").unwrap_or_default()).map_err(Refusal::internal)?;
    check_reachable(version, store.version())?;
    let object = store.get(key).ok_or_else(|| Refusal::not_found(&key.collection, &key.name))?;
    Ok(Answer::Object(200, object))
}

/// Lists the current objects, or those of an exact version. A later page begins where the last one ended, and shows what was
/// stored at the first one.
pub(crate) fn list(store: &Store, info: &RequestInfo, target: &Target) -> Result<Answer, Refusal> {
    let options = ListOptions::parse(&target.collection, None, &info.query, false)?;
    let current = store.version();
    let exact = options.exact_version();
    check_reachable(exact.unwrap_or(options.version), current)?;
    let version = exact.unwrap_or(current);
    let objects = store.objects_at(version).ok_or_else(|| Refusal::list_expired(options.from.is_some()))?;
    let filter = options.filter(target);
    let mut found = objects.list(&filter);
    if let Some(from) = &options.from {
        found.retain(|(key, _)| (&key.namespace, &key.name) > (&from.namespace, &from.name));
    }
    let all = found.len();
    // Objects that the selectors leave out count too: the real server looks at them only on the next page.
    let last = objects.last(&filter);
    // Version 0 asks for the real server's cache, which has no pages.
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

pub(crate) fn watch(store: &mut Store, info: &RequestInfo, target: &Target) -> Result<Answer, Refusal> {
    let collection = &target.collection;
    let options = ListOptions::parse(collection, target.name.as_deref(), &info.query, true)?;
    let current = store.version();
    // Like the real server, answers 200 and then sends the refusal as an event.
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
        store.objects().list(&filter).iter().map(|(_, object)| line("ADDED", &object.bytes)).collect()
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
