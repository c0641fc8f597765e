//! The layer: it wraps the lock, and makes the task that keeps the `LeaseCandidate`.

use crate::{
    keeper::Keeper,
    lock::CoordinatedLock,
    record::CandidateSpec,
    settings::{Coordination, ErrInvalidCoordination, check},
    status::LockStatus,
};
use kube_leader_gate::{
    election::{ElectionBuilder, LockContext, LockLayer},
    lease::BoxLock,
};
use tokio::sync::{oneshot, watch};

/// Adds [`ElectionBuilder`] the coordinator of the API server.
pub trait Coordinated: Sized {
    /// Leaves the choice of the leader to the coordinator: wraps the lock of the election, and keeps the `LeaseCandidate`
    /// beside it. A setting that does not fit the election is refused as
    /// [`ErrBuild::Lock`](kube_leader_gate::election::ErrBuild::Lock).
    ///
    /// Wrap the lock with [early takeover](https://docs.rs/kube-leader-gate-early-takeover) before this, if at all.
    #[must_use]
    fn coordinated(self, coordination: Coordination) -> Self;
}

/// Wraps the lock, and hands over what keeps the `LeaseCandidate`.
struct Layer {
    coordination: Coordination,
    keeps: oneshot::Sender<Keeper>,
}

impl Coordinated for ElectionBuilder {
    fn coordinated(self, coordination: Coordination) -> Self {
        let (keeps, keeper) = oneshot::channel();
        // A stop waits for it.
        let keep = |_, over| async move {
            if let Ok(keeper) = keeper.await {
                Keeper::run(keeper, over).await;
            }
        };
        self.layer_lock(Layer { coordination, keeps }).attend(keep)
    }
}

impl LockLayer for Layer {
    type Lock = CoordinatedLock;
    type Error = ErrInvalidCoordination;

    fn layer(self, inner: BoxLock, context: &LockContext) -> Result<CoordinatedLock, ErrInvalidCoordination> {
        let candidate = context.candidate().clone();
        check(candidate.identity(), context.priority())?;
        let (tell, status) = watch::channel(LockStatus::default());
        let (list, listed) = watch::channel(false);
        let Coordination { client, versions } = self.coordination;
        let card = CandidateSpec {
            identity: candidate.identity().clone(),
            lease: candidate.lease().clone(),
            versions,
        };
        // It fails only if there is no election to keep it for.
        let _ = self.keeps.send(Keeper::new(client, card, &candidate.timing(), context, status, list));
        Ok(CoordinatedLock::new(inner, context.clone(), tell, listed))
    }
}
