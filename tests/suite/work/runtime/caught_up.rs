//! When a cache has caught up with the API server (rule S16). The tests fill the caches by hand, so that no watch is faster
//! than they want. The random test in `histories` has a real watch.

use crate::{
    support::{FIRST, SOON, build, builder, candidate, pass, until},
    work::runtime::things::{path, want},
};
use futures_util::FutureExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, PartialObjectMeta, Resource},
    runtime::{
        reflector::{Lookup, Store, store::Writer},
        watcher::{Config, Event},
    },
};
use kube_leader_gate::{
    LeaseTiming,
    runtime::{ErrCaughtUp, caught_up},
    testing::{ApiServer, Fault},
};
use serde::de::DeserializeOwned;
use std::{error::Error, fmt::Debug, future::pending, hash::Hash, time::Duration};
use tokio::task::JoinHandle;

/// A little longer than the pause before the second list.
const SECOND_LIST: Duration = Duration::from_millis(300);

struct Cache<K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static = ConfigMap> {
    server: ApiServer,
    writer: Writer<K>,
    api: Api<K>,
    config: Config,
    dyntype: K::DynamicType,
}

type Outcome = JoinHandle<Result<(), ErrCaughtUp>>;

impl<K> Cache<K>
where
    K: Resource<DynamicType: Eq + Hash + Clone + Send + Sync + 'static> + Clone + Debug,
    K: DeserializeOwned + Send + Sync + 'static,
{
    fn of(server: &ApiServer, dyntype: K::DynamicType) -> Self {
        let client = Client::new(server.service().user("a"), "default");
        let (api, writer) = (Api::all_with(client, &dyntype), Writer::new(dyntype.clone()));
        Self { server: server.clone(), writer, api, config: Config::default(), dyntype }
    }

    fn store(&self) -> Store<K> {
        self.writer.as_reader()
    }

    /// Begins to wait, in a task of its own.
    fn waits(&self) -> Outcome {
        tokio::spawn(caught_up(&self.api, &self.config, &self.store(), &self.dyntype))
    }

    /// The object as the server has it now.
    fn object(&self, name: &str) -> K {
        serde_json::from_value(self.server.object(&path(name)).unwrap()).unwrap()
    }

    /// Shows the cache what the server has of this object now.
    fn sees(&mut self, name: &str) {
        self.writer.apply_watcher_event(&Event::Apply(self.object(name)));
    }

    fn sees_all(&mut self, names: &[&str]) {
        for name in names {
            self.sees(name);
        }
    }

    /// Shows the cache that this object is gone.
    fn loses(&mut self, object: K) {
        self.writer.apply_watcher_event(&Event::Delete(object));
    }
}

fn cache(server: &ApiServer) -> Cache {
    Cache::of(server, ())
}

fn server(names: &[&str]) -> ApiServer {
    let server = ApiServer::new();
    for name in names {
        want(&server, name, "x");
    }
    server
}

fn lists(server: &ApiServer) -> u64 {
    server.reads("a", "list", "configmaps")
}

async fn completes(waits: &mut Outcome) {
    until(SOON, "the cache has caught up", || waits.is_finished()).await;
    waits.now_or_never().unwrap().unwrap().unwrap();
}

async fn fails(mut waits: Outcome) -> ErrCaughtUp {
    until(SOON, "it fails", || waits.is_finished()).await;
    (&mut waits).now_or_never().unwrap().unwrap().unwrap_err()
}

async fn goes_on(waits: &Outcome) {
    pass(Duration::from_secs(5)).await;
    assert!(!waits.is_finished());
}

#[tokio::test(start_paused = true)]
async fn one_list_is_enough_for_a_cache_that_has_all() {
    let server = server(&["a", "b"]);
    let mut cache = cache(&server);
    cache.sees("a");
    cache.sees("b");
    completes(&mut cache.waits()).await;
    assert_eq!(lists(&server), 1);
}

#[tokio::test(start_paused = true)]
async fn s16_deletion_that_the_cache_lacks_is_waited_for() {
    let server = server(&["a", "b", "c"]);
    let mut cache = cache(&server);
    cache.sees_all(&["a", "b", "c"]);
    let gone = cache.object("b");
    server.delete("outsider", &path("b")).unwrap();
    let mut waits = cache.waits();
    goes_on(&waits).await;
    assert_eq!(lists(&server), 1, "the cache alone is looked at");
    cache.loses(gone);
    completes(&mut waits).await;
}

/// What comes after the list does not matter.
#[tokio::test(start_paused = true)]
async fn later_changes_are_not_waited_for() {
    let server = server(&["a", "b"]);
    let mut cache = cache(&server);
    cache.sees("a");
    let mut waits = cache.waits();
    pass(SOON).await;
    let listed = cache.object("b");
    want(&server, "a", "later");
    want(&server, "b", "later");
    want(&server, "c", "later");
    cache.writer.apply_watcher_event(&Event::Apply(listed));
    completes(&mut waits).await;
}

/// Of a kind with short-lived objects there is always one that the cache has never seen.
#[tokio::test(start_paused = true)]
async fn object_that_is_gone_by_the_next_list_is_not_waited_for() {
    let server = server(&["a", "short-lived"]);
    let mut cache = cache(&server);
    cache.sees("a");
    let mut waits = cache.waits();
    pass(SOON).await;
    server.delete("outsider", &path("short-lived")).unwrap();
    until(SECOND_LIST, "the cache has caught up", || waits.is_finished()).await;
    completes(&mut waits).await;
    assert_eq!(lists(&server), 2);
}

/// It was there when the list was made, and is gone from the cache when the list is compared.
#[tokio::test(start_paused = true)]
async fn object_that_the_cache_had_at_the_call_is_not_waited_for() {
    let server = server(&["a", "b"]);
    let mut cache = cache(&server);
    cache.sees("a");
    cache.sees("b");
    let late = server.inject(Fault::delay_after(SOON).verb("list"));
    let mut waits = cache.waits();
    pass(SOON / 2).await;
    let gone = cache.object("b");
    server.delete("outsider", &path("b")).unwrap();
    cache.loses(gone);
    pass(SOON / 2).await;
    completes(&mut waits).await;
    assert_eq!((lists(&server), late.hits()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn pages_are_read_to_the_end_and_grow() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let server = server(&names);
    let mut cache = cache(&server);
    cache.config = Config::default().page_size(1);
    cache.sees_all(&names[..6]);
    let mut waits = cache.waits();
    pass(SOON).await;
    assert_eq!(lists(&server), 3, "of one, two and four objects");
    goes_on(&waits).await;
    cache.sees("g");
    completes(&mut waits).await;
}

#[tokio::test(start_paused = true)]
async fn no_further_page_is_read_once_the_cache_is_as_new_as_the_list() {
    let names = ["a", "b", "c", "d", "e"];
    let server = server(&names);
    let mut cache = cache(&server);
    cache.config = Config::default().page_size(2);
    let late = server.inject(Fault::delay_after(SOON).verb("list"));
    let mut waits = cache.waits();
    pass(SOON / 2).await;
    want(&server, "f", "after the list");
    cache.sees("f");
    pass(SOON / 2).await;
    completes(&mut waits).await;
    assert_eq!(late.hits(), 1);
}

#[tokio::test(start_paused = true)]
async fn selectors_of_the_watch_count() {
    let server = server(&["a"]);
    let mut cache = cache(&server);
    cache.config = Config::default().labels("app=other");
    completes(&mut cache.waits()).await;
    cache.config = Config::default().fields("metadata.name=a");
    let mut waits = cache.waits();
    goes_on(&waits).await;
    cache.sees("a");
    completes(&mut waits).await;
}

#[tokio::test(start_paused = true)]
async fn dynamic_objects_and_metadata_alone_are_compared_too() {
    let server = server(&["a", "b"]);
    let mut dynamic = Cache::<DynamicObject>::of(&server, ApiResource::erase::<ConfigMap>(&()));
    let mut metadata = Cache::<PartialObjectMeta<ConfigMap>>::of(&server, ());
    dynamic.sees("a");
    metadata.sees("a");
    let (mut one, mut two) = (dynamic.waits(), metadata.waits());
    goes_on(&one).await;
    goes_on(&two).await;
    dynamic.sees("b");
    metadata.sees("b");
    completes(&mut one).await;
    completes(&mut two).await;
}

#[tokio::test(start_paused = true)]
async fn missing_permission_ends_it_at_once() {
    let server = server(&["a"]);
    let cache = cache(&server);
    let _forbidden = server.inject(Fault::forbidden().verb("list"));
    let error = fails(cache.waits()).await;
    assert!(error.source().is_some() && !error.is_unknown_kind());
    let told = error.to_string();
    assert!(told.starts_with("configmaps cannot be listed: forbidden: 403"), "{told}");
    assert!(told.ends_with("To do: grant this process list on configmaps, by a Role"), "{told}");
}

/// The program may apply the kind once it leads.
#[tokio::test(start_paused = true)]
async fn unknown_kind_ends_it_at_once_and_can_be_told() {
    let cache = cache(&server(&[]));
    let _unknown = cache.server.inject(Fault::status(404).verb("list"));
    let error = fails(cache.waits()).await;
    assert!(error.is_unknown_kind());
    assert_eq!(
        error.to_string(),
        "configmaps cannot be listed: the API server does not know this kind. To do: install its CustomResourceDefinition; if \
         this program applies it itself, see ErrCaughtUp::is_unknown_kind"
    );
}

#[tokio::test(start_paused = true)]
async fn failures_that_may_pass_are_tried_again() {
    let server = server(&["a"]);
    let mut cache = cache(&server);
    cache.sees("a");
    for fault in [Fault::status(500), Fault::status(429), Fault::status(410), Fault::drop_before()] {
        let fault = server.inject(fault.verb("list").times(3));
        let mut waits = cache.waits();
        until(Duration::from_secs(1), "it has caught up", || waits.is_finished()).await;
        completes(&mut waits).await;
        assert_eq!(fault.hits(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn version_that_is_no_number_ends_it_at_once() {
    let server = server(&["a"]);
    let mut cache = cache(&server);
    let mut odd = cache.object("a");
    odd.metadata.resource_version = Some("v1".into());
    cache.writer.apply_watcher_event(&Event::Apply(odd));
    let told = fails(cache.waits()).await.to_string();
    assert!(told.starts_with(r#"the resource version "v1" of configmaps is not a number"#), "{told}");
}

/// After a restored backup, the versions of the cache tell nothing.
#[tokio::test(start_paused = true)]
async fn s16_cache_that_is_newer_than_the_list_is_not_believed() {
    let server = server(&["a"]);
    let mut cache = cache(&server);
    let mut newer = cache.object("a");
    newer.metadata.resource_version = Some("1000000".into());
    cache.writer.apply_watcher_event(&Event::Apply(newer));
    let mut waits = cache.waits();
    goes_on(&waits).await;
    cache.sees("a");
    until(SECOND_LIST, "it has caught up", || waits.is_finished()).await;
    completes(&mut waits).await;
}

/// As of a store that is filled only while the process leads.
#[tokio::test(start_paused = true)]
async fn gate_says_what_the_cache_lacks() {
    let server = server(&["a", "b"]);
    for (seen, words) in [
        (
            &[] as &[&str],
            "the cache lacks 2 of the configmaps as the API server has stored them, first default/a; the cache is empty",
        ),
        (&["a"], "the cache lacks 1 of the configmaps as the API server has stored them, first default/b"),
    ] {
        let mut cache = cache(&server);
        cache.sees_all(seen);
        let (api, store) = (cache.api.clone(), cache.store());
        let election =
            candidate(&server, "a").open_when(move |_| caught_up(&api, &Config::default(), &store, &()));
        let of_a = election.candidate();
        let running = election.start();
        let told = || of_a.trouble().as_deref().unwrap_or_default().to_owned();
        until(FIRST + Duration::from_secs(2), "it says so", || told().contains("holds the lease")).await;
        assert!(told().contains(words), "{}", told());
        until(Duration::from_secs(10), "it gives the lease up", || told().contains("given the lease up"))
            .await;
        assert!(told().contains(words), "{}", told());
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn s16_caches_of_two_kinds_are_both_waited_for() {
    let server = server(&["a"]);
    let (mut one, mut two) = (cache(&server), cache(&server));
    let knows = |cache: &Cache| {
        let (api, store) = (cache.api.clone(), cache.store());
        move |_| caught_up(&api, &Config::default(), &store, &())
    };
    let election = candidate(&server, "a").open_when(knows(&one)).open_when(knows(&two));
    let running = election.start();
    let of_a = running.candidate();
    until(FIRST, "it waits", || of_a.opening().is_some()).await;
    one.sees("a");
    pass(Duration::from_secs(2)).await;
    assert!(!of_a.can_write());
    two.sees("a");
    until(SOON, "the gate opens", || of_a.can_write()).await;
}

#[tokio::test(start_paused = true)]
async fn cache_that_has_caught_up_is_not_blamed_for_what_comes_after_it() {
    let server = server(&["a"]);
    let mut cache = cache(&server);
    let (api, store) = (cache.api.clone(), cache.store());
    let election = candidate(&server, "a").open_when(move |_| {
        let caught_up = caught_up(&api, &Config::default(), &store, &());
        async move {
            caught_up.await.map_err(|error| error.to_string())?;
            pending::<Result<(), String>>().await
        }
    });
    let running = election.start();
    let told = || running.candidate().trouble().as_deref().unwrap_or_default().to_owned();
    until(3 * FIRST, "it says what it lacks", || told().contains("the cache lacks 1")).await;
    cache.sees("a");
    until(2 * FIRST, "it is met", || told().ends_with("a condition of `open_when` is not met yet")).await;
}

/// The API server is slow, which is why the watch is late, too.
#[tokio::test(start_paused = true)]
async fn cache_that_has_all_is_seen_while_a_later_list_hangs() {
    let server = server(&["a"]);
    let mut cache = cache(&server);
    let mut waits = cache.waits();
    pass(SOON).await;
    let hangs = server.inject(Fault::hang_before().verb("list").resource("configmaps"));
    until(FIRST, "it lists again", || hangs.hits() == 1).await;
    cache.sees("a");
    until(SOON, "it has caught up", || waits.is_finished()).await;
    completes(&mut waits).await;
}

#[tokio::test(start_paused = true)]
async fn gate_says_what_the_cache_still_has() {
    let server = server(&["a", "b"]);
    let mut cache = cache(&server);
    cache.sees_all(&["a", "b"]);
    server.delete("outsider", &path("b")).unwrap();
    let (api, store) = (cache.api.clone(), cache.store());
    let election =
        candidate(&server, "a").open_when(move |_| caught_up(&api, &Config::default(), &store, &()));
    let running = election.start();
    let told = || running.candidate().trouble().as_deref().unwrap_or_default().to_owned();
    until(3 * FIRST, "it says so", || told().contains("the cache still has 1 configmaps that are gone"))
        .await;
    assert!(told().ends_with("for example default/b"), "{}", told());
}

#[tokio::test(start_paused = true)]
async fn gate_says_which_list_has_not_come() {
    let server = server(&["a"]);
    let cache = cache(&server);
    let (api, store) = (cache.api.clone(), cache.store());
    let _hangs = server.inject(Fault::hang_before().verb("list").resource("configmaps"));
    let election = candidate(&server, "a")
        .open_when(|_| async { Ok::<_, String>(()) })
        .open_when(move |_| caught_up(&api, &Config::default(), &store, &()));
    let running = election.start();
    let told = || running.candidate().trouble().as_deref().unwrap_or_default().to_owned();
    until(3 * FIRST, "it says so", || told().ends_with("the list of configmaps has not come yet")).await;
}

#[tokio::test(start_paused = true)]
async fn gate_says_what_the_cache_lacks_soon_after_it_is_known() {
    let server = server(&["a"]);
    let cache = cache(&server);
    let _slow = server.inject(Fault::delay_after(Duration::from_millis(1_200)).verb("list"));
    let (api, store) = (cache.api.clone(), cache.store());
    let election = build(&server, "a", builder("a").timing(LeaseTiming::default())).unwrap();
    let election = election.open_when(move |_| caught_up(&api, &Config::default(), &store, &()));
    let of_a = election.candidate();
    let _running = election.start();
    until(Duration::from_secs(20), "it waits", || of_a.opening().is_some()).await;
    pass(Duration::from_secs(3)).await;
    let told = of_a.trouble().unwrap();
    assert!(told.contains("the cache lacks 1 of the configmaps"), "{told}");
}
