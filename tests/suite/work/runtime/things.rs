//! Objects to reconcile: config maps in which `have` must become what `want` says.

use crate::support::{LEASE, SOON, candidate, gated as gated_client, until};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{
        Controller,
        controller::{Action, Error as ControllerError},
        watcher,
    },
};
use kube_leader_gate::{election::Running, runtime::gated, testing::ApiServer};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    future::{self, Future},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio_util::task::AbortOnDropHandle;

/// A replica that reconciles things. Dropping it is a crash.
pub struct Replica {
    pub running: Running,
    pub context: Arc<Context>,
    _controller: AbortOnDropHandle<()>,
}

pub struct Context {
    pub things: Api<ConfigMap>,
    /// Reconciliations begun, by name.
    pub begun: Mutex<BTreeMap<String, usize>>,
    /// Errors that reached the error policy.
    pub errors: Mutex<Vec<String>>,
}

pub fn path(name: &str) -> String {
    format!("/api/v1/namespaces/default/configmaps/{name}")
}

/// An outsider creates or changes a thing.
pub fn want(server: &ApiServer, name: &str, what: &str) {
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default" }, "data": { "want": what } });
    match server.object(&path(name)) {
        Some(_) => server.edit("outsider", &path(name), |it| it["data"]["want"] = what.into()),
        None => server.put("outsider", &path(name), object),
    }
    .expect("written");
}

pub fn is_done(server: &ApiServer, name: &str) -> bool {
    server.object(&path(name)).is_some_and(|it| it["data"]["have"] == it["data"]["want"])
}

/// How often `user` has asked to list and to watch things.
pub fn looks(server: &ApiServer, user: &str) -> (u64, u64) {
    (server.reads(user, "list", "configmaps"), server.reads(user, "watch", "configmaps"))
}

/// Makes `have` what `want` says, if it is not.
pub async fn reconcile(thing: Arc<ConfigMap>, context: Arc<Context>) -> Result<Action, kube::Error> {
    context.begin(&thing);
    let wanted = thing.data.as_ref().and_then(|data| data.get("want"));
    if thing.data.as_ref().and_then(|data| data.get("have")) != wanted {
        let patch: Value = json!({ "data": { "have": wanted } });
        context.things.patch(&thing.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    Ok(Action::await_change())
}

/// A controller as in the guide, with this reconciler.
pub fn start<F, Fut, E>(server: &ApiServer, identity: &str, reconcile: F) -> Replica
where
    F: FnMut(Arc<ConfigMap>, Arc<Context>) -> Fut + Send + 'static,
    Fut: Future<Output = Result<Action, E>> + Send + 'static,
    E: std::error::Error + Send + 'static,
{
    let election = candidate(server, identity);
    let client = gated_client(server, &election, identity);
    let running = election.start();
    let things = Api::namespaced(client, "default");
    let context = Arc::new(Context::new(things.clone()));
    let policy = |_: Arc<ConfigMap>, error: &E, context: Arc<Context>| {
        context.errors.lock().unwrap().push(error.to_string());
        Action::requeue(Duration::from_secs(1))
    };
    let candidate = running.candidate();
    let controller = Controller::new(things, watcher::Config::default())
        .reconcile_all_on(candidate.gains())
        .run(gated(reconcile), policy, context.clone())
        .for_each(|outcome| {
            // As in the guides: an object that is gone is no failure.
            if let Err(error @ ControllerError::ReconcilerFailed(..)) = outcome {
                tracing::error!(%error, "reconcile failed");
            }
            future::ready(())
        });
    Replica { running, context, _controller: AbortOnDropHandle::new(tokio::spawn(controller)) }
}

/// Waits until the replica's controller has seen this state of the thing, or a later one.
pub async fn until_seen(replica: &Replica, name: &str, times: usize) {
    until(SOON, "it is reconciled", || replica.context.begun(name) >= times).await;
}

// === impl Replica ===

impl Replica {
    pub fn leads(&self) -> bool {
        self.running.candidate().can_write()
    }

    pub fn errors(&self) -> Vec<String> {
        self.context.errors.lock().unwrap().clone()
    }
}

// === impl Context ===

impl Context {
    pub fn new(things: Api<ConfigMap>) -> Self {
        Self { things, begun: Mutex::default(), errors: Mutex::default() }
    }

    pub fn begin(&self, thing: &ConfigMap) {
        *self.begun.lock().unwrap().entry(thing.name_any()).or_default() += 1;
    }

    pub fn begun(&self, name: &str) -> usize {
        self.begun.lock().unwrap().get(name).copied().unwrap_or_default()
    }
}

/// Takes the lease from its holder, which may take it again at once.
pub fn depose(server: &ApiServer) {
    server.delete("outsider", LEASE).expect("the lease is there");
}
