//! The cache of a replica that knows: a watch of the object that its workload writes. Its gate waits for this cache (rule
//! S16).

use crate::{line::Line, net::Shared, work};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    client::ClientBuilder,
    runtime::{
        reflector::{self, Store, reflector},
        watcher::{self, watcher},
    },
};
use kube_leader_gate::{
    Election,
    leadership::{LeadershipState, Term},
    runtime::caught_up,
    testing::ApiServer,
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::sleep;
use tower::timeout::TimeoutLayer;

/// If an answer has not begun after this time, the client gives the request up.
const PATIENCE: Duration = Duration::from_secs(4);
/// The API server ends a watch after so many seconds. If it does not, kube-runtime gives the watch up 5 s later.
const WATCH: u32 = 6;
/// What follows an error comes so much later. kube-runtime's own pauses are random, and no seed decides them.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Cache {
    api: Api<ConfigMap>,
    config: watcher::Config,
    store: Store<ConfigMap>,
    net: Shared,
    server: ApiServer,
    lease: usize,
    /// The last term whose gate has waited, and the version that the API server had stored when the wait began.
    asked: Arc<Mutex<Option<(Term, u64)>>>,
    /// The last term whose gate has opened.
    opened: Option<Term>,
}

/// The gate of a new term has opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The version in the cache.
    pub cached: u64,
    /// What the API server had stored when the gate began to wait. None if it has not waited.
    pub asked: Option<u64>,
}

impl Cache {
    /// Begins to watch. Call it in the runtime of the process.
    pub fn new(line: &Line, server: &ApiServer, lease: usize) -> Self {
        let client =
            ClientBuilder::new(line.clone(), "default").with_layer(&TimeoutLayer::new(PATIENCE)).build();
        let api = Api::default_namespaced(client);
        let config =
            watcher::Config::default().fields(&format!("metadata.name={}", work::name(lease))).timeout(WATCH);
        let (store, writer) = reflector::store();
        let watch = reflector(writer, watcher(api.clone(), config.clone())).for_each(|event| async move {
            if event.is_err() {
                sleep(PAUSE).await;
            }
        });
        // It ends with the process.
        drop(tokio::spawn(watch));
        let (net, server) = (line.net.clone(), server.clone());
        Self { api, config, store, net, server, lease, asked: Arc::default(), opened: None }
    }

    /// Lets the gate of each new term wait for this cache.
    pub fn hold_shut(&self, election: Election) -> Election {
        let (api, config, store) = (self.api.clone(), self.config.clone(), self.store.clone());
        let (net, server, asked, lease) =
            (self.net.clone(), self.server.clone(), self.asked.clone(), self.lease);
        election.open_when(move |term| {
            let version = work::stored(&server, lease).version;
            *asked.lock().expect("no panic") = Some((term, version));
            net.get().seen.openings.asks(cached(&store) < version);
            caught_up(&api, &config, &store, &())
        })
    }

    /// Whether the gate of a new term has opened since the last look.
    pub fn opens(&mut self, state: &LeadershipState) -> Option<Opening> {
        let term = state.term.clone().filter(|term| self.opened.as_ref() != Some(term))?;
        let asked = self.asked.lock().expect("no panic").clone();
        let asked = asked.filter(|(of, _)| *of == term).map(|(_, version)| version);
        self.opened = Some(term);
        Some(Opening { cached: cached(&self.store), asked })
    }
}

/// The version in a cache of one object. 0 if the cache is empty.
fn cached(store: &Store<ConfigMap>) -> u64 {
    let version = store.state().first().and_then(|it| it.resource_version());
    version.map_or(0, |it| it.parse().expect("a version of this API server"))
}
