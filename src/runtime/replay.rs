//! A cache from which the work of each term gets all objects at its start.

use super::feed::{Feed, Following, feed};
use crate::{election::Candidate, leadership::Term};
use futures_util::{Stream, StreamExt, future, stream};
use kube_runtime::{
    reflector::{Lookup, Store},
    watcher::{self, Event},
};
use std::{fmt, hash::Hash, sync::Arc};

/// The handle to a cache that the stream of [`replay()`] fills. Clones are cheap and share the cache.
pub struct Replay<K: Lookup<DynamicType: Eq + Hash> + 'static> {
    feed: Arc<Feed<K>>,
}

/// Keeps a cache of the objects in `events` (a kube-runtime `watcher` with a backoff). [`Replay::during`] yields them
/// all at the start of each term.
///
/// The stream fills the cache as it is polled, and passes its events on. Drive it on every replica, while the process
/// lives, as you drive a `reflector`. It ends when `events` does. It never waits for a slow consumer. `next` is
/// cancel-safe. Dropping the stream ends the streams of its terms.
///
/// `dyntype` is `()` for a kind that the program knows, and an `ApiResource` for a `DynamicObject`.
pub fn replay<K, S>(
    events: S,
    dyntype: K::DynamicType,
) -> (Replay<K>, impl Stream<Item = watcher::Result<Event<K>>>)
where
    K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static,
    S: Stream<Item = watcher::Result<Event<K>>>,
{
    let (mut source, feed) = feed(dyntype);
    let watched = events.map(Some).chain(stream::iter([None])).filter_map(move |event| {
        match &event {
            Some(Ok(event)) => source.take(event),
            // The cache keeps its objects: the watcher lists or watches again.
            Some(Err(_)) => {}
            None => source.close(),
        }
        future::ready(event)
    });
    (Replay { feed }, watched)
}

// === impl Replay ===

impl<K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static> Replay<K> {
    /// The cache, to look up objects. It is warm on every replica.
    #[must_use]
    pub fn store(&self) -> Store<K> {
        self.feed.store.clone()
    }

    /// Yields the objects and their changes, while `candidate` may write in `term`. It sends no request.
    ///
    /// 1. It begins with everything in the cache: [`Event::Init`], an [`Event::InitApply`] for each object,
    ///    [`Event::InitDone`]. If the watch has not finished its first list yet, the stream waits for it.
    /// 2. Then it yields an [`Event::Apply`] or [`Event::Delete`] for each change. There is no second
    ///    [`Event::Init`]: if the watch has to list again, the stream yields the difference to its earlier events.
    ///    Deletions come first, each with the last object that the stream yielded.
    /// 3. If a consumer is more than 256 changes behind, the stream yields such a difference too. It then skips some
    ///    states in between, but never the last state of an object or its deletion.
    /// 4. It ends when the term does, even if more events wait: by a loss, by the deadline
    ///    ([rule S1](crate::guide::guarantees#s1-leading-is-a-deadline)), or when the election stops. If the term is
    ///    over already, it is empty. It also ends when the stream of [`replay()`] ends or is dropped, since the cache is
    ///    dead then.
    ///
    /// The cache is only as fresh as the watch. If the watch has not seen a change at the gain, the change comes
    /// later as an event. Each stream keeps an index of what it has yielded, which shares the objects with the cache.
    /// `next` is cancel-safe.
    ///
    /// To feed a kube-runtime reconciler on the leader only:
    ///
    /// ```no_run
    /// use futures_util::StreamExt;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::runtime::{applier, controller, controller::Action, reflector::ObjectRef, watcher::Event};
    /// use kube_leader_gate::{Candidate, leadership::Term, runtime::{Replay, gated}};
    /// use std::{convert::Infallible, future, sync::Arc, time::Duration};
    ///
    /// # async fn reconcile(_: Arc<ConfigMap>, _: Arc<()>) -> Result<Action, kube::Error> { Ok(Action::await_change()) }
    /// async fn lead(replay: &Replay<ConfigMap>, candidate: &Candidate, term: &Term) {
    ///     let queue = replay.during(candidate, term).filter_map(|event| {
    ///         future::ready(match event {
    ///             Event::InitApply(it) | Event::Apply(it) => Some(Ok::<_, Infallible>(ObjectRef::from_obj(&*it))),
    ///             Event::Init | Event::InitDone | Event::Delete(_) => None,
    ///         })
    ///     });
    ///     let reconcile = gated(reconcile); // a write that a loss cuts off is no error
    ///     let retry = |_: Arc<_>, _: &_, _: Arc<()>| Action::requeue(Duration::from_secs(5));
    ///     applier(reconcile, retry, Arc::new(()), replay.store(), queue, controller::Config::default())
    ///         .for_each(|_| future::ready(()))
    ///         .await; // until the term is over, and what it began has ended
    /// }
    /// ```
    pub fn during(
        &self,
        candidate: &Candidate,
        term: &Term,
    ) -> impl Stream<Item = Event<Arc<K>>> + Send + Unpin + use<K>
    where
        K: Send + Sync,
        K::DynamicType: Send + Sync,
    {
        let following = Following::new(self.feed.clone(), candidate.clone(), term.clone());
        let next = |mut following: Following<K>| async move { Some((following.next().await?, following)) };
        stream::unfold(following, next).fuse().boxed()
    }
}

impl<K: Lookup<DynamicType: Eq + Hash> + 'static> Clone for Replay<K> {
    fn clone(&self) -> Self {
        Self { feed: self.feed.clone() }
    }
}

impl<K: Lookup<DynamicType: Eq + Hash> + 'static> fmt::Debug for Replay<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").finish_non_exhaustive()
    }
}
