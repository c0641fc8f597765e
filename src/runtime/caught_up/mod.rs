//! Waits until a cache has what the API server had stored (rule S16).

mod error;
mod list;

pub use self::error::ErrCaughtUp;

use self::{
    error::Why,
    list::{Listed, MetadataList, key, number},
};
use crate::election::note_missing;
use kube_client::{Api, Resource};
use kube_runtime::{
    reflector::{Lookup, Store},
    watcher,
};
use std::{future::Future, hash::Hash, pin::pin, sync::Arc, time::Duration};
use tokio::{select, time::sleep};

/// The pause between two looks at the cache: the first one, and the longest. Each is twice as long as the one before.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_LOOK: Duration = Duration::from_millis(32);
/// The pause before the second list, which only shows what is gone meanwhile. Each further one is twice as long.
const LIST_AGAIN: Duration = Duration::from_millis(250);

/// Completes once `store` has all that the API server had stored at this call, so that what a new leader decides rests on the
/// last writes of the former leader ([rule S16](crate::guide::guarantees#s16-a-new-leader-knows-the-last-writes)). Give it to
/// [`Election::open_when`](crate::Election::open_when), which keeps the gate shut until then.
///
/// `config` is the one of the watch that fills `store`: its selectors and its page size count. `dyntype` is `&()` for a kind
/// that the program knows, and the `ApiResource` for a `DynamicObject`. The store may hold whole objects or their metadata
/// alone (`PartialObjectMeta`). The client of `api` needs the permission to list the kind, as the watch does.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Secret;
/// use kube::{Api, runtime::{Controller, watcher}};
/// use kube_leader_gate::{Election, runtime::caught_up};
///
/// # fn example(config: &kube_client::Config) -> Result<(), Box<dyn std::error::Error>> {
/// let election = Election::builder("my-namespace", "my-controller").build(config)?;
/// let secrets: Api<Secret> = Api::default_namespaced(election.client(config)?);
/// let watched = watcher::Config::default().labels("app=my-controller");
/// let controller = Controller::new(secrets.clone(), watched.clone());
/// let store = controller.store();
/// let election = election.open_when(move |_| caught_up(&secrets, &watched, &store, &()));
/// # Ok(())
/// # }
/// ```
///
/// 1. It lists the metadata of all objects once, by a consistent read, with one request for each page. The first page has the
///    size that `config` says, and each further page is twice as large as the one before.
/// 2. It waits until the cache has had each of these objects with the listed version or a newer one. If a later list shows that
///    an object is gone, it only waits until the cache shows no older state of it. The first later list comes after 250 ms.
/// 3. It waits until each object that the cache has beyond the list is gone, or is newer than the list.
/// 4. If the cache shows an object that is as new as the whole list, it has seen all before, because the events of a watch come
///    in order. Then it waits no longer, and asks for no further page.
///
/// It looks at the cache by itself, and never calls `Store::wait_until_ready`: kube-runtime wakes one waiter alone, and the
/// controller may be that waiter. It spawns no task, and has no time limit of its own. Cancel-safe: if you drop
/// it, nothing is left behind.
///
/// The watch that fills `store` has to run on every replica, also on one that does not lead. If a store is filled only while
/// this process leads, this waits for the store, and the store waits for the gate. Then the gate's
/// [time limit](crate::election::ElectionBuilder::open_timeout) ends the wait, and says that the cache is empty. As long as the
/// API server has no object of this kind, this mistake does not show.
///
/// With `ListSemantic::Any` or a streaming list, a watch that begins anew may show an older state for a moment, at any time.
/// Use kube-runtime's default for a kind whose objects you create by what the cache lacks.
///
/// # Errors
/// [`ErrCaughtUp`] if the API server refuses the list, if it [does not know the kind](ErrCaughtUp::is_unknown_kind), or if a
/// version is not a number. If the API server is away or too busy, this asks again, without end.
pub fn caught_up<A, K>(
    api: &Api<A>,
    config: &watcher::Config,
    store: &Store<K>,
    dyntype: &K::DynamicType,
) -> impl Future<Output = Result<(), ErrCaughtUp>> + Send + use<A, K>
where
    A: Resource + Clone,
    K: Lookup<DynamicType: Eq + Hash + Clone + Send + Sync> + Clone + Send + Sync + 'static,
{
    let group = K::group(dyntype);
    let dot = if group.is_empty() { "" } else { "." };
    let resource = format!("{}{dot}{group}", K::plural(dyntype));
    let (list, store) = (MetadataList::new(api, config), store.clone());
    async move {
        loop {
            let Err(why) = catch_up(&list, &store, &resource).await else {
                note_missing(&"");
                return Ok(());
            };
            let error = ErrCaughtUp { resource: resource.clone(), why };
            if !error.may_pass() {
                return Err(error);
            }
            note_missing(&error);
            sleep(LIST_AGAIN).await;
        }
    }
}

async fn catch_up<K>(list: &MetadataList, store: &Store<K>, resource: &str) -> Result<(), Why>
where
    K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static,
{
    let cached = newest(&store.state())?;
    let has_seen =
        |version| cached <= version && newest(&store.state()).is_ok_and(|newest| version <= newest);
    note_missing(&format_args!("the list of {resource} has not come yet"));
    let Some(Listed { version, versions: mut listed }) = list.all(has_seen).await? else { return Ok(()) };
    if version < cached {
        return Err(Why::Older { version, cached });
    }
    let (mut seen, mut pause, mut again) = (cached, FIRST_LOOK, LIST_AGAIN);
    let list_after = |pause| async move {
        sleep(pause).await;
        list.all(has_seen).await
    };
    let mut later = pin!(list_after(again));
    loop {
        let objects = store.state();
        seen = newest(&objects)?.max(seen);
        if version <= seen {
            return Ok(());
        }
        let lacks = || listed.iter().filter(|(_, version)| seen < **version);
        let names = objects.iter().map(|object| key(object.namespace(), object.name()));
        let mut beyond = names.filter(|name| !listed.contains_key(name));
        if let Some((first, _)) = lacks().min_by_key(|(_, version)| **version) {
            let (count, first) = (lacks().count(), first.trim_start_matches('/'));
            let empty = if objects.is_empty() {
                "; the cache is empty: its watch has to run on every replica, also before this one leads"
            } else {
                ""
            };
            note_missing(&format_args!(
                "the cache lacks {count} of the {resource} as the API server has stored them, first {first}{empty}"
            ));
        } else if let Some(first) = beyond.next() {
            let (count, first) = (1 + beyond.count(), first.trim_start_matches('/'));
            note_missing(&format_args!(
                "the cache still has {count} {resource} that are gone, for example {first}"
            ));
        } else {
            return Ok(());
        }
        let is_behind = lacks().next().is_some();
        select! {
            () = sleep(pause) => {}
            now = &mut later, if is_behind => {
                let Some(now) = now? else { return Ok(()) };
                // What is gone need not come any more, but an older state of it has to go.
                listed.retain(|name, version| *version <= seen || now.versions.contains_key(name));
                again *= 2;
                later.set(list_after(again));
            }
        }
        pause = LONGEST_LOOK.min(pause * 2);
    }
}

/// The largest version in a cache. The events of one watch come in order, so the cache has seen all that is not newer.
fn newest<K: Lookup>(objects: &[Arc<K>]) -> Result<u64, Why> {
    objects
        .iter()
        .try_fold(0, |newest, object| Ok(newest.max(number(&object.resource_version().unwrap_or_default())?)))
}
