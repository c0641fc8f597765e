//! How a test reads and writes objects without a request.

use serde_json::Value;

use crate::object::stored::Key;
use crate::ops::answer::check_place;
use crate::ops::change::overwrite;
use crate::path::{Route, Target};
use crate::request::RequestInfo;
use crate::select::selector::Selector;
use crate::server::{ApiServer, State};
use crate::status::Refusal;
use crate::store::filter::Filter;

/// Direct access. Paths are those of the API, such as `/api/v1/namespaces/default/configmaps/a`.
///
/// A write gets a version, reaches the watches, and is in the write log under the given user, like a client's
/// write. Faults do not apply to it. The server does not validate it, does not compare versions, and stores the
/// status too. So a test can store what a real server would refuse.
impl ApiServer {
    /// Returns the object at the path.
    #[must_use]
    pub fn object(&self, path: &str) -> Option<Value> {
        let (_, key) = named(path).ok()?;
        self.shared.state().store.get(&key).map(|it| it.value.clone())
    }

    /// Returns the objects of the collection at the path, in the order of namespace and name.
    #[must_use]
    pub fn objects(&self, path: &str) -> Vec<Value> {
        let Route::Resource(target) = Route::parse(path) else {
            return Vec::new();
        };
        let Target { collection, namespace, .. } = target;
        let filter = Filter { collection, namespace, selector: Selector::default() };
        let found = self.shared.state().store.objects().list(&filter);
        found.iter().map(|(_, object)| object.value.clone()).collect()
    }

    /// Creates the object or replaces it as a whole. Returns the stored object.
    ///
    /// # Errors
    /// The path does not name an object, or the object names another one.
    pub fn put(&self, user: &str, path: &str, object: Value) -> Result<Value, Refusal> {
        self.write(user, path, |_| Ok(object))
    }

    /// Changes the object. Returns the stored object.
    ///
    /// `edit` runs under the server's lock, so it must not use the server.
    ///
    /// # Errors
    /// The path does not name an object, or the object does not exist.
    pub fn edit(&self, user: &str, path: &str, edit: impl FnOnce(&mut Value)) -> Result<Value, Refusal> {
        self.write(user, path, |existing| {
            let mut object = existing.ok_or_else(|| not_found(path))?;
            edit(&mut object);
            Ok(object)
        })
    }

    /// Deletes the object.
    ///
    /// # Errors
    /// The path does not name an object, or the object does not exist.
    pub fn delete(&self, user: &str, path: &str) -> Result<(), Refusal> {
        let (_, key) = named(path)?;
        let mut state = self.shared.state();
        if state.store.get(&key).is_none() {
            return Err(not_found(path));
        }
        let State { store, log } = &mut *state;
        let entry = log.arrived(&request(user, path, http::Method::DELETE, "delete"));
        store.remove(key);
        if let Some(entry) = entry {
            log.completed(entry, 200, None);
        }
        Ok(())
    }

    fn write(
        &self,
        user: &str,
        path: &str,
        next: impl FnOnce(Option<Value>) -> Result<Value, Refusal>,
    ) -> Result<Value, Refusal> {
        let (target, key) = named(path)?;
        let mut state = self.shared.state();
        let existing = state.store.get(&key).map(|it| it.value.clone());
        let (code, verb) = if existing.is_some() { (200, "update") } else { (201, "create") };
        let object = next(existing)?;
        check_place(&target, &object)?;
        let State { store, log } = &mut *state;
        let entry = log.arrived(&request(user, path, http::Method::PUT, verb));
        let stored = overwrite(store, key, object);
        if let Some(entry) = entry {
            log.completed(entry, code, Some(&stored.value));
        }
        Ok(stored.value.clone())
    }
}

fn named(path: &str) -> Result<(Target, Key), Refusal> {
    let Route::Resource(target) = Route::parse(path) else {
        return Err(Refusal::no_such_path());
    };
    let Target { collection, namespace, name, .. } = target.clone();
    let (Some(name), None) = (name, &target.subresource) else {
        return Err(Refusal::no_such_path());
    };
    Ok((target, Key { collection, namespace: namespace.unwrap_or_default(), name }))
}

fn not_found(path: &str) -> Refusal {
    named(path).map_or_else(|refusal| refusal, |(_, key)| Refusal::not_found(&key.collection, &key.name))
}

/// The request that stands for a direct write in the log.
fn request(user: &str, path: &str, method: http::Method, verb: &'static str) -> RequestInfo {
    RequestInfo {
        method,
        path: path.to_owned(),
        route: Route::parse(path),
        verb,
        user: user.to_owned(),
        ..RequestInfo::default()
    }
}
