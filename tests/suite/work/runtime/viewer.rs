//! A leading-only consumer that builds a model from what it receives.

use crate::support::{SOON, candidate, gated, until};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use kube_leader_gate::{
    Candidate,
    election::Running,
    runtime::{Replay, replay},
    testing::ApiServer,
};
use std::{
    collections::BTreeMap,
    future,
    sync::{Arc, Mutex, MutexGuard},
};
use tokio_util::task::AbortOnDropHandle;

/// The names of objects, and their versions.
pub type Model = BTreeMap<String, String>;

/// A candidate with a watched cache, driven in a task.
pub struct Viewer {
    pub running: Running,
    pub things: Api<ConfigMap>,
    pub replay: Replay<ConfigMap>,
    pub watching: AbortOnDropHandle<()>,
}

/// What a consumer received, term by term.
#[derive(Clone, Default)]
pub struct View(Arc<Mutex<Seen>>);

#[derive(Default)]
pub struct Seen {
    pub model: Model,
    /// Whether the whole snapshot of the present term has arrived.
    pub complete: bool,
    pub terms: usize,
    pub applied: usize,
    pub deleted: usize,
}

/// A candidate `identity` that watches config maps and has listed them. It follows no stream yet.
pub async fn viewer(server: &ApiServer, identity: &str) -> Viewer {
    let viewer = unlisted(server, identity);
    let listed = || server.reads(identity, "watch", "configmaps") > 0;
    until(SOON, "the first list is over", listed).await;
    viewer
}

/// The same, before its first list.
pub fn unlisted(server: &ApiServer, identity: &str) -> Viewer {
    let election = candidate(server, identity);
    let things: Api<ConfigMap> = Api::namespaced(gated(server, &election, identity), "default");
    let (replay, watched) = replay(watcher(things.clone(), watcher::Config::default()).default_backoff(), ());
    let watching = AbortOnDropHandle::new(tokio::spawn(watched.for_each(|_| future::ready(()))));
    Viewer { running: election.start(), things, replay, watching }
}

/// What the server holds.
pub fn truth(server: &ApiServer) -> Model {
    let entry = |object: &serde_json::Value| {
        let text = |field: &str| object["metadata"][field].as_str().expect("a string").to_owned();
        (text("name"), text("resourceVersion"))
    };
    server.objects("/api/v1/namespaces/default/configmaps").iter().map(entry).collect()
}

// === impl Viewer ===

impl Viewer {
    pub fn candidate(&self) -> &Candidate {
        self.running.candidate()
    }

    pub fn watch_no_more(&self) {
        self.watching.abort();
    }

    /// Follows each term, and checks each item as it arrives.
    pub async fn follow(&self, view: View) {
        let leader = self.candidate();
        loop {
            let term = leader.elected().await;
            let mut events = self.replay.during(leader, &term);
            view.seen().begin();
            while let Some(event) = events.next().await {
                assert!(
                    leader.can_write() && leader.term().as_ref() == Some(&term),
                    "told outside of its term"
                );
                view.seen().take(event);
            }
            view.seen().complete = false;
            assert!(!leader.can_write() || leader.term().as_ref() != Some(&term), "ended within its term");
        }
    }
}

// === impl View ===

impl View {
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().expect("no thread panics while it looks")
    }
}

// === impl Seen ===

impl Seen {
    fn begin(&mut self) {
        self.model.clear();
        self.complete = false;
        self.terms += 1;
    }

    /// Checks that no item is repeated or out of place.
    pub fn take(&mut self, event: Event<Arc<ConfigMap>>) {
        let version = |object: &ConfigMap| object.resource_version().expect("a version");
        match event {
            Event::Init => assert!(!self.complete && self.model.is_empty(), "once a term"),
            Event::InitApply(object) => {
                assert!(!self.complete);
                assert_eq!(self.model.insert(object.name_any(), version(&object)), None, "told twice");
            }
            Event::InitDone => self.complete = true,
            Event::Apply(object) => {
                assert!(self.complete);
                let before = self.model.insert(object.name_any(), version(&object));
                assert_ne!(before, Some(version(&object)), "told twice");
                self.applied += 1;
            }
            Event::Delete(object) => {
                assert!(self.complete);
                assert!(self.model.remove(&object.name_any()).is_some(), "gone already");
                self.deleted += 1;
            }
        }
    }
}
