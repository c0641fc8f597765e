use futures_util::{StreamExt, stream, stream::BoxStream};
use kube_leader_gate::lease::{ErrLock, ErrLockKind, LeaseEvent, LeaseName, LeaseRecord, LeaseUpdate, Lock};
use serde_json::Value;
use std::{
    collections::HashMap,
    future::ready,
    sync::{Arc, Mutex},
};
use tokio::sync::broadcast;

/// Leases in a map. Clones share it.
#[derive(Clone)]
pub struct Leases(Arc<Mutex<Store>>);

struct Store {
    leases: HashMap<LeaseName, LeaseRecord>,
    /// The version of the last write to any lease.
    version: u64,
    events: broadcast::Sender<(LeaseName, LeaseEvent)>,
}

impl Default for Leases {
    fn default() -> Self {
        let events = broadcast::channel(16).0;
        Self(Arc::new(Mutex::new(Store { leases: HashMap::new(), version: 0, events })))
    }
}

impl Leases {
    /// The lock on one lease of the map.
    pub fn lock(&self, lease: LeaseName) -> MapLock {
        MapLock { leases: self.clone(), lease }
    }

    /// Deletes a lease.
    pub fn delete(&self, lease: &LeaseName) {
        let mut store = self.0.lock().unwrap();
        if let Some(last) = store.leases.remove(lease) {
            let last = store.next_version(last.into_json());
            store.events.send((lease.clone(), LeaseEvent::Deleted(last))).ok();
        }
    }

    /// Replaces a lease with `object`, as a client that is not a candidate does.
    pub fn put(&self, lease: &LeaseName, object: Value) {
        self.0.lock().unwrap().put(lease, object);
    }
}

impl Store {
    fn put(&mut self, lease: &LeaseName, object: Value) -> LeaseRecord {
        let record = self.next_version(object);
        self.leases.insert(lease.clone(), record.clone());
        // Sending fails when no watch is open.
        self.events.send((lease.clone(), LeaseEvent::Seen(record.clone()))).ok();
        record
    }

    fn next_version(&mut self, mut object: Value) -> LeaseRecord {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        LeaseRecord::from_json(object).expect("it has a uid and a resource version")
    }
}

pub struct MapLock {
    leases: Leases,
    lease: LeaseName,
}

impl Lock for MapLock {
    type Events = BoxStream<'static, Result<LeaseEvent, ErrLock>>;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        Ok(self.leases.0.lock().unwrap().leases.get(&self.lease).cloned())
    }

    async fn create(&self, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        let mut store = self.leases.0.lock().unwrap();
        if store.leases.contains_key(&self.lease) {
            return Err(ErrLock::new(ErrLockKind::Conflict, "the lease exists"));
        }
        let mut object = claim.new_lease(&self.lease);
        // No later lease gets this version, so none gets this uid.
        object["metadata"]["uid"] = format!("uid-{}", store.version).into();
        Ok(store.put(&self.lease, object))
    }

    async fn update(&self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        let mut store = self.leases.0.lock().unwrap();
        match store.leases.get(&self.lease) {
            None => Err(ErrLock::new(ErrLockKind::NotFound, "there is no lease")),
            // Versions are never used twice, so this one names the object too.
            Some(stored) if stored.resource_version() != seen.resource_version() => {
                Err(ErrLock::new(ErrLockKind::Conflict, "the lease has changed"))
            }
            Some(_) => Ok(store.put(&self.lease, seen.with(claim).into_json())),
        }
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        // One lock for both steps, so that no change falls between the first event and the later ones.
        let store = self.leases.0.lock().unwrap();
        let first = store.leases.get(&self.lease).cloned().map(LeaseEvent::Seen);
        let events = stream::unfold(store.events.subscribe(), |mut events| async move {
            // A watch that has fallen behind ends. The election then begins another one.
            Some((events.recv().await.ok()?, events))
        });
        let lease = self.lease.clone();
        let own = events.filter_map(move |(of, event)| ready((of == lease).then_some(event)));
        Ok(stream::iter(first).chain(own).map(Ok).boxed())
    }
}
