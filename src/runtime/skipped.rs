//! A gated reconciler that remembers which objects it skipped.

use super::reconcile::judge;
use crate::election::Candidate;
use futures_util::{
    FutureExt, Stream, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use kube_runtime::{
    controller::Action,
    reflector::{Lookup, ObjectRef, Store},
};
use std::{
    collections::HashSet,
    error::Error,
    fmt,
    future::Future,
    hash::Hash,
    iter,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

/// Remembers which objects a follower's reconciler would have changed, and hands them to the controller first when this
/// replica begins to lead.
///
/// With `reconcile_all_on(candidate.gains())` a gain starts one reconciliation for each object of the store at the same
/// moment. With 1,000 objects, the one that needs a write waits among 999 that do not. With `Skipped`, a gain hands out:
///
/// 1. First the objects that were skipped, because the gate refused or cut off a write of their reconciliation. The one that
///    was skipped last comes first.
/// 2. Then each other object of the store, once.
///
/// They come one by one, every 3 ms, so 1,000 objects take 3 s. They come from the cache, so the gain costs no list.
/// [`keep_open`](super::keep_open) keeps connections open for the first of them.
///
/// # The rules
/// - An object stays noted until a reconciliation of it ends well without a refused write, on a follower or on the leader.
/// - A loss stops the sweep. The next gain begins it anew, with what is noted then, so it loses no object.
/// - If a gain comes while an object is reconciled, the controller reconciles the object once more.
/// - At most 1,024 objects are noted. If there are more, the oldest note is forgotten. Its object is among the others of
///   the store, so it comes later.
///
/// # What to know
/// - Which objects come first depends on the reconciler. One that writes only what is not yet as it should be is refused
///   only where a write is needed. One that always writes is refused for every object, and the objects that changed last
///   come first.
/// - `Controller::reconcile_on` needs kube's feature `unstable-runtime` (or `unstable-runtime-reconcile-on` of kube-runtime).
/// - A reconciler that hides its error from the controller hides the refusal too. Its object is not noted, and comes with
///   the others.
///
/// ```no_run
/// use futures_util::StreamExt;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, runtime::{Controller, controller::Action, watcher}};
/// use kube_leader_gate::{Candidate, runtime::Skipped};
/// use std::{future, sync::Arc, time::Duration};
///
/// # async fn reconcile(_: Arc<ConfigMap>, _: Arc<()>) -> Result<Action, kube::Error> { Ok(Action::await_change()) }
/// async fn control(maps: Api<ConfigMap>, candidate: &Candidate) {
///     let controller = Controller::new(maps, watcher::Config::default());
///     let skipped = Skipped::new(candidate, controller.store(), ());
///     controller
///         .reconcile_on(skipped.due())
///         .run(skipped.gated(reconcile), |_, _, _| Action::requeue(Duration::from_secs(5)), Arc::new(()))
///         .for_each(|_| future::ready(()))
///         .await;
/// }
/// ```
pub struct Skipped<K: Lookup<DynamicType: Eq + Hash> + 'static> {
    notes: Arc<Notes<K>>,
    candidate: Candidate,
    store: Store<K>,
    dyntype: K::DynamicType,
}

// === impl Skipped ===

impl<K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static> Skipped<K> {
    /// For one controller. `store` is its cache: `Controller::store`, or the reader of its reflector. `dyntype` is `()` for
    /// a kind that the program knows, and an `ApiResource` for a `DynamicObject`.
    #[must_use]
    pub fn new(candidate: &Candidate, store: Store<K>, dyntype: K::DynamicType) -> Self {
        Self { notes: Arc::new(Notes::new()), candidate: candidate.clone(), store, dyntype }
    }

    /// Wraps a reconciler as [`gated`](super::gated) does, and notes each object that it skips. Dropping the returned
    /// future drops the future of `reconcile`, and notes nothing.
    pub fn gated<Ctx, R, F, E>(
        &self,
        mut reconcile: R,
    ) -> impl FnMut(Arc<K>, Arc<Ctx>) -> BoxFuture<'static, Result<Action, E>> + use<K, Ctx, R, F, E>
    where
        R: FnMut(Arc<K>, Arc<Ctx>) -> F,
        F: Future<Output = Result<Action, E>> + Send + 'static,
        E: Error + 'static,
        K::DynamicType: Send + Sync,
    {
        let (notes, dyntype) = (self.notes.clone(), self.dyntype.clone());
        move |object, context| {
            let (notes, name) = (notes.clone(), object.to_object_ref(dyntype.clone()));
            let judged = reconcile(object, context).map(move |outcome| {
                let verdict = judge(outcome);
                if verdict.skipped {
                    notes.note(name);
                } else if verdict.outcome.is_ok() {
                    notes.forget(&name);
                }
                // After an error, the error policy brings it back. If it has been skipped before, the next gain does so too.
                verdict.outcome
            });
            judged.boxed()
        }
    }

    /// Yields what is due after each gain of leadership, for `Controller::reconcile_on`. Call it once for a controller.
    ///
    /// It sends no request and spawns no task. It ends when the election does. `next` is cancel-safe.
    pub fn due(&self) -> impl Stream<Item = ObjectRef<K>> + Send + Unpin + use<K>
    where
        K: Send + Sync,
        K::DynamicType: Send + Sync,
    {
        let sweep =
            Sweep::new(self.notes.clone(), self.store.clone(), self.dyntype.clone(), self.candidate.clone());
        let next = |mut sweep: Sweep<K>| async move { Some((sweep.next().await?, sweep)) };
        stream::unfold(sweep, next).fuse().boxed()
    }
}

impl<K: Lookup<DynamicType: Eq + Hash> + 'static> fmt::Debug for Skipped<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Skipped").finish_non_exhaustive()
    }
}

// === impl Sweep ===

/// The time from one object to the next: 333 objects a second. A controller keeps the order of objects that come at
/// different milliseconds, and their writes share a few connections.
const PAUSE: Duration = Duration::from_millis(3);

struct Sweep<K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static> {
    notes: Arc<Notes<K>>,
    store: Store<K>,
    dyntype: K::DynamicType,
    candidate: Candidate,
    gains: BoxStream<'static, ()>,
    /// What is left to hand out.
    due: Option<Due<K>>,
    /// When the next object may be handed out. None: at once.
    next: Option<Instant>,
}

type Due<K> = Box<dyn Iterator<Item = ObjectRef<K>> + Send>;

impl<K> Sweep<K>
where
    K: Lookup<DynamicType: Eq + Hash + Clone + Send + Sync> + Clone + Send + Sync + 'static,
{
    fn new(notes: Arc<Notes<K>>, store: Store<K>, dyntype: K::DynamicType, candidate: Candidate) -> Self {
        let gains = candidate.gains().boxed();
        Self { notes, store, dyntype, candidate, gains, due: None, next: None }
    }

    /// The next object. None if the election is over.
    async fn next(&mut self) -> Option<ObjectRef<K>> {
        loop {
            tokio::select! {
                biased;
                gain = self.gains.next() => {
                    gain?;
                    self.due = Some(self.all());
                    self.next = None;
                }
                () = wait(self.next), if self.due.is_some() => {
                    // After a loss, what is left stays noted or in the store, and the next gain has it.
                    let due = self.due.as_mut().filter(|_| self.candidate.can_write());
                    if let Some(object) = due.and_then(Iterator::next) {
                        self.next = Some(Instant::now() + PAUSE);
                        return Some(object);
                    }
                    self.due = None;
                }
            }
        }
    }

    /// The noted objects, then the rest of the store.
    fn all(&self) -> Due<K> {
        let (notes, store, dyntype) = (self.notes.clone(), self.store.clone(), self.dyntype.clone());
        let first = notes.all();
        let told: HashSet<_> = first.iter().cloned().collect();
        // After the last noted one: what has changed meanwhile came by the watch.
        let rest = iter::once_with({
            let store = store.clone();
            move || store.state()
        });
        let rest = rest.flatten().map(move |object| object.to_object_ref(dyntype.clone()));
        let rest = rest.filter(move |object| !told.contains(object));
        Box::new(first.into_iter().chain(rest).filter(move |object| {
            // An object that is not in the store is gone: if it comes back, the watch says so.
            let is_there = store.get(object).is_some();
            if !is_there {
                notes.forget(object);
            }
            is_there
        }))
    }
}

async fn wait(until: Option<Instant>) {
    if let Some(until) = until {
        sleep_until(until).await;
    }
}

// === impl Notes ===

/// How many objects are noted at most. If there are more, the oldest note is forgotten, and its object comes with the rest
/// of the store.
const MOST: usize = 1024;

/// The last one is last. They are few, so a look through all of them costs microseconds.
struct Notes<K: Lookup<DynamicType: Eq + Hash> + 'static>(Mutex<Vec<ObjectRef<K>>>);

impl<K: Lookup<DynamicType: Eq + Hash> + 'static> Notes<K> {
    const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// The gate refused or cut off a write for this object.
    fn note(&self, object: ObjectRef<K>) {
        let mut notes = self.open();
        notes.retain(|it| *it != object);
        if notes.len() == MOST {
            notes.remove(0);
        }
        notes.push(object);
    }

    /// The object needs no write, or is gone.
    fn forget(&self, object: &ObjectRef<K>) {
        self.open().retain(|it| it != object);
    }

    /// All noted objects, the last one first. They stay noted.
    fn all(&self) -> Vec<ObjectRef<K>>
    where
        K::DynamicType: Clone,
    {
        self.open().iter().rev().cloned().collect()
    }

    /// Under the lock, only the comparison and the copy of a user's type can panic.
    fn open(&self) -> MutexGuard<'_, Vec<ObjectRef<K>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    fn object(name: &str) -> ObjectRef<ConfigMap> {
        ObjectRef::new(name)
    }

    fn names(notes: &Notes<ConfigMap>) -> Vec<String> {
        notes.all().iter().map(|it| it.name.clone()).collect()
    }

    #[test]
    fn last_note_comes_first_and_each_object_once() {
        let notes = Notes::new();
        for name in ["a", "b", "c", "a"] {
            notes.note(object(name));
        }
        assert_eq!(names(&notes), ["a", "c", "b"]);
        notes.forget(&object("c"));
        assert_eq!(names(&notes), ["a", "b"], "they stay until they are forgotten");
    }

    #[test]
    fn oldest_note_makes_room_for_the_newest() {
        let notes = Notes::new();
        for number in 0..=MOST {
            notes.note(object(&number.to_string()));
        }
        let names = names(&notes);
        assert_eq!(names.len(), MOST);
        assert_eq!((names[0].as_str(), names[MOST - 1].as_str()), (MOST.to_string().as_str(), "1"));
    }
}
