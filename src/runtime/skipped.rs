//! A gated reconciler that remembers which objects it skipped.

use super::{notes::Notes, reconcile::judge, sweep::Sweep};
use crate::election::Candidate;
use futures_util::{Stream, StreamExt, stream};
use kube_runtime::{
    controller::Action,
    reflector::{Lookup, ObjectRef, Store},
};
use pin_project_lite::pin_project;
use std::{
    error::Error,
    fmt,
    future::Future,
    hash::Hash,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

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
///   So a loss in the middle of the sweep loses no object.
/// - A loss stops the sweep. The next gain begins it anew, with what is noted then.
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
///     let skipped = Skipped::new(candidate, controller.store());
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

pin_project! {
    /// The future of a reconciler from [`Skipped::gated`]. Dropping it notes nothing.
    #[must_use = "futures do nothing unless polled"]
    pub struct Noted<K, F>
    where
        K: Lookup,
        K: 'static,
        K::DynamicType: Eq,
        K::DynamicType: Hash,
    {
        #[pin]
        reconciling: F,
        notes: Arc<Notes<K>>,
        // None once it has ended.
        object: Option<ObjectRef<K>>,
    }
}

// === impl Skipped ===

impl<K: Lookup<DynamicType: Eq + Hash + Clone> + Clone + 'static> Skipped<K> {
    /// For one controller. `store` is its cache: `Controller::store`, or the reader of its reflector.
    #[must_use]
    pub fn new(candidate: &Candidate, store: Store<K>) -> Self
    where
        K::DynamicType: Default,
    {
        Self::new_with(candidate, store, K::DynamicType::default())
    }

    /// As [`new`](Self::new), for a kind that is known only at run time, such as `DynamicObject`.
    #[must_use]
    pub fn new_with(candidate: &Candidate, store: Store<K>, dyntype: K::DynamicType) -> Self {
        Self { notes: Arc::new(Notes::new()), candidate: candidate.clone(), store, dyntype }
    }

    /// Wraps a reconciler as [`gated`](super::gated) does, and notes each object that it skips. Dropping the returned
    /// future drops the future of `reconcile`, and notes nothing.
    pub fn gated<Ctx, R, F, E>(
        &self,
        mut reconcile: R,
    ) -> impl FnMut(Arc<K>, Arc<Ctx>) -> Noted<K, F> + use<K, Ctx, R, F, E>
    where
        R: FnMut(Arc<K>, Arc<Ctx>) -> F,
        F: Future<Output = Result<Action, E>>,
        E: Error + 'static,
    {
        let (notes, dyntype) = (self.notes.clone(), self.dyntype.clone());
        move |object, context| Noted {
            object: Some(object.to_object_ref(dyntype.clone())),
            notes: notes.clone(),
            reconciling: reconcile(object, context),
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

// === impl Noted ===

impl<K, F, E> Future for Noted<K, F>
where
    K: Lookup<DynamicType: Eq + Hash> + 'static,
    F: Future<Output = Result<Action, E>>,
    E: Error + 'static,
{
    type Output = Result<Action, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let verdict = judge(ready!(this.reconciling.poll(cx)));
        match (this.object.take(), &verdict.outcome) {
            (Some(object), _) if verdict.skipped => this.notes.note(object),
            (Some(object), Ok(_)) => this.notes.forget(&object),
            // The error policy brings it back. If it has been skipped before, the next gain does so too.
            _ => {}
        }
        Poll::Ready(verdict.outcome)
    }
}

impl<K: Lookup<DynamicType: Eq + Hash> + 'static, F> fmt::Debug for Noted<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Noted").finish_non_exhaustive()
    }
}
