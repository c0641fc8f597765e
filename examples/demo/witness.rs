//! The evidence in a cluster: an independent watch of both objects, written down as a write log.
//!
//! Lease and `ConfigMap` share one counter of versions (etcd's), so the version gives the order. A time is when the
//! watch reported the change.

use crate::Failure;
use futures_util::{StreamExt, pin_mut};
use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::ConfigMap},
    serde::de::DeserializeOwned,
};
use kube_client::{
    Api, Resource,
    api::{Patch, PatchParams, WatchEvent, WatchParams},
    core::ObjectMeta,
};
use kube_leader_gate::testing::{LogTime, StoredLease, WriteRecord};
use serde_json::json;
use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

/// How long a watch may lag behind at the end.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

pub struct Witness {
    leases: Api<Lease>,
    objects: Api<ConfigMap>,
    name: String,
    seen: Arc<Mutex<Seen>>,
    _watches: JoinSet<()>,
}

#[derive(Default)]
struct Seen {
    log: Vec<WriteRecord>,
    newest_lease: u64,
    newest_object: u64,
    data: Option<BTreeMap<String, String>>,
    trouble: Option<String>,
}

impl Witness {
    pub async fn new(leases: Api<Lease>, objects: Api<ConfigMap>, name: &str) -> Result<Self, Failure> {
        let seen = Arc::<Mutex<Seen>>::default();
        let mut watches = JoinSet::new();
        let since = leases.get(name).await?.metadata.resource_version.unwrap_or_default();
        let log = seen.clone();
        watches.spawn(follow(leases.clone(), name.to_owned(), since, seen.clone(), move |lease, deleted| {
            lock(&log).lease(lease, deleted);
        }));
        let since = objects.get(name).await?.metadata.resource_version.unwrap_or_default();
        let log = seen.clone();
        watches.spawn(follow(
            objects.clone(),
            name.to_owned(),
            since,
            seen.clone(),
            move |object, deleted| {
                lock(&log).object(object, deleted);
            },
        ));
        Ok(Self { leases, objects, name: name.to_owned(), seen, _watches: watches })
    }

    /// Everything up to now: marks both objects, and waits until both watches have shown the marks.
    pub async fn write_log(&self) -> Result<Vec<WriteRecord>, Failure> {
        let mark =
            Patch::Merge(json!({ "metadata": { "annotations": { "kube-leader-gate-demo": "judged" } } }));
        let params = PatchParams::default();
        let lease = version(&self.leases.patch(&self.name, &params, &mark).await?.metadata);
        let object = version(&self.objects.patch(&self.name, &params, &mark).await?.metadata);
        let asked = Instant::now();
        loop {
            {
                let seen = lock(&self.seen);
                if let Some(trouble) = &seen.trouble {
                    return Err(format!("the watch has missed something: {trouble}").into());
                }
                if seen.newest_lease >= lease && seen.newest_object >= object {
                    return Ok(seen.log.clone());
                }
            }
            if asked.elapsed() > PATIENCE {
                return Err("the watch lags behind".into());
            }
            sleep(PAUSE).await;
        }
    }
}

impl Seen {
    fn lease(&mut self, lease: &Lease, deleted: bool) {
        let version = version(&lease.metadata);
        self.newest_lease = version;
        let spec = lease.spec.clone().unwrap_or_default();
        let holder_identity = spec.holder_identity.unwrap_or_default();
        let left = StoredLease {
            uid: lease.metadata.uid.clone().unwrap_or_default(),
            holder_identity: holder_identity.clone(),
            lease_transitions: spec.lease_transitions.map(i64::from),
            lease_duration_seconds: spec.lease_duration_seconds.map(i64::from),
            acquire_time: spec.acquire_time.map(|time| time.0.to_string()),
            renew_time: spec.renew_time.map(|time| time.0.to_string()),
        };
        let record = record(holder_identity, "coordination.k8s.io", "leases", &lease.metadata, deleted);
        self.log.push(WriteRecord { lease: (!deleted).then_some(left), ..record });
    }

    fn object(&mut self, object: &ConfigMap, deleted: bool) {
        self.newest_object = version(&object.metadata);
        // The mark is no replica's write: it leaves the data as it was.
        if deleted || object.data == self.data {
            return;
        }
        self.data.clone_from(&object.data);
        if let Some(writer) = object.data.as_ref().and_then(|data| data.get("writer")) {
            self.log.push(record(writer.clone(), "", "configmaps", &object.metadata, false));
        }
    }
}

fn record(user: String, group: &str, resource: &str, metadata: &ObjectMeta, deleted: bool) -> WriteRecord {
    let name = metadata.name.clone().unwrap_or_default();
    let moment = LogTime { at: Instant::now(), order: version(metadata) };
    WriteRecord {
        user,
        user_agent: String::new(),
        method: if deleted { http::Method::DELETE } else { http::Method::PATCH },
        verb: if deleted { "delete" } else { "patch" },
        path: format!("{resource}/{name}"),
        group: group.to_owned(),
        version: "v1".to_owned(),
        resource: resource.to_owned(),
        namespace: metadata.namespace.clone(),
        name: Some(name),
        subresource: None,
        dry_run: false,
        received: moment,
        completed: Some(moment),
        status: 200,
        lease: None,
    }
}

/// Watches one object from `since` on, without a gap.
async fn follow<K>(
    api: Api<K>,
    name: String,
    mut since: String,
    seen: Arc<Mutex<Seen>>,
    tell: impl Fn(&K, bool),
) where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let params = WatchParams::default().fields(&format!("metadata.name={name}"));
    loop {
        let Ok(events) = api.watch(&params, &since).await else {
            // Nothing is missed meanwhile: the next one goes on from the same version.
            sleep(PAUSE).await;
            continue;
        };
        pin_mut!(events);
        while let Some(Ok(event)) = events.next().await {
            let (object, deleted) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(status) => {
                    lock(&seen).trouble = Some(status.to_string());
                    return;
                }
            };
            tell(&object, deleted);
            since = object.meta().resource_version.clone().unwrap_or(since);
        }
    }
}

fn version(metadata: &ObjectMeta) -> u64 {
    metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
