//! An operator that creates one child for each parent. It looks into its cache whether there is one already, and the API
//! server chooses the names of the children. The tests on a real API server run it too.

use futures_util::StreamExt;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, ResourceExt,
    api::PostParams,
    runtime::{
        Controller, WatchStreamExt,
        controller::Action,
        reflector::{self, Store, reflector},
        watcher::{self, Event, watcher},
    },
};
use kube_leader_gate::{
    Candidate, Election,
    election::Running,
    runtime::{caught_up, gated},
};
use std::{
    collections::HashSet,
    future,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio_util::task::AbortOnDropHandle;

/// The label of a child that names its parent.
pub const PARENT: &str = "parent";

/// Changes the election of a replica, given its children, before it begins.
pub type Adapt = fn(Election, &Children) -> Election;

/// The children as one replica sees them.
pub struct Children {
    pub api: Api<Secret>,
    /// The configuration of their watch.
    pub config: watcher::Config,
    /// What the watch has shown.
    pub store: Store<Secret>,
}

/// One process of the operator. Dropping it is a crash.
pub struct Replica {
    running: Running,
    children: Children,
    _controller: AbortOnDropHandle<()>,
    _watch: AbortOnDropHandle<()>,
}

struct Context {
    children: Api<Secret>,
    known: Mutex<Known>,
}

/// What one process knows of the children, by the names of their parents.
#[derive(Default)]
struct Known {
    /// Those in its cache: an index of the store.
    cached: HashSet<String>,
    /// Those that this process creates or has created, and that are not in its cache yet.
    expected: HashSet<String>,
}

/// The gate opens as soon as the lease is held.
pub fn as_it_is(election: Election, _: &Children) -> Election {
    election
}

/// The gate opens when the cache of the children has caught up.
pub fn knowing(election: Election, children: &Children) -> Election {
    let (api, config, store) = (children.api.clone(), children.config.clone(), children.store.clone());
    election.open_when(move |_| caught_up(&api, &config, &store, &()))
}

/// `client` is behind the gate of the election. `watching` watches the children, and does nothing else.
pub fn start(election: Election, client: Client, watching: Client, adapt: Adapt) -> Replica {
    let (store, writer) = reflector::store();
    let config = watcher::Config::default();
    let children = Children { api: Api::default_namespaced(client.clone()), config, store };
    let context = Arc::new(Context { children: children.api.clone(), known: Mutex::default() });

    let watched = Api::<Secret>::default_namespaced(watching);
    let events = watcher(watched, children.config.clone()).default_backoff();
    let seen = context.clone();
    let watch = reflector(writer, events).for_each(move |event| {
        seen.see(event);
        future::ready(())
    });

    // The one place at which a scene changes how the election opens its gate.
    let running = adapt(election, &children).start();

    let parents = Api::<ConfigMap>::default_namespaced(client);
    let controller = Controller::new(parents, watcher::Config::default())
        .reconcile_all_on(running.candidate().gains())
        .run(gated(reconcile), |_, _, _| Action::requeue(Duration::from_secs(1)), context)
        .for_each(|_| future::ready(()));
    Replica {
        running,
        children,
        _controller: AbortOnDropHandle::new(tokio::spawn(controller)),
        _watch: AbortOnDropHandle::new(tokio::spawn(watch)),
    }
}

/// Creates the child of this parent, unless this process knows that there is one.
async fn reconcile(parent: Arc<ConfigMap>, context: Arc<Context>) -> Result<Action, kube::Error> {
    let name = parent.name_any();
    if context.expect(&name) {
        let child = Secret {
            metadata: ObjectMeta {
                generate_name: Some(format!("{name}-")),
                labels: Some([(PARENT.to_owned(), name.clone())].into()),
                ..ObjectMeta::default()
            },
            ..Secret::default()
        };
        if let Err(error) = context.children.create(&PostParams::default(), &child).await {
            context.known.lock().unwrap().expected.remove(&name);
            return Err(error);
        }
    }
    Ok(Action::await_change())
}

// === impl Replica ===

impl Replica {
    pub fn candidate(&self) -> &Candidate {
        self.running.candidate()
    }

    /// How many children are in its cache.
    pub fn cached(&self) -> usize {
        self.children.store.len()
    }
}

// === impl Context ===

impl Context {
    /// Whether this process knows of no child of this parent. It expects one from now on.
    fn expect(&self, parent: &str) -> bool {
        let mut known = self.known.lock().unwrap();
        !known.cached.contains(parent) && known.expected.insert(parent.to_owned())
    }

    /// Takes in what the reflector has just put into the store. The scenes delete no children.
    fn see(&self, event: watcher::Result<Event<Secret>>) {
        if let Ok(Event::Apply(child) | Event::InitApply(child)) = event {
            let parent = child.labels()[PARENT].clone();
            let mut known = self.known.lock().unwrap();
            known.expected.remove(&parent);
            known.cached.insert(parent);
        }
    }
}
