//! A lease that is shown as held again, at the same version, after it was shown as free.

use crate::{
    pods::{create, early, replica, report_end, watches},
    support::{FIRST, SETTLE, SOON, build, builder, pass, spec, within},
};
use futures_util::{StreamExt, stream, stream::BoxStream};
use kube_leader_gate::{
    extension::{LockContext, LockLayer},
    lease::{BoxLock, ErrLock, LeaseEvent, LeaseRecord, LeaseUpdate, Lock},
    testing::ApiServer,
};
use kube_leader_gate_early_takeover::{EarlyTakeover, ErrInvalidEarlyTakeover};
use std::time::Duration;

/// Early takeover whose watch shows the real lease after each free one. Its reads show the real lease.
struct Wavers(EarlyTakeover);

struct Wavering {
    real: BoxLock,
    early: BoxLock,
}

impl LockLayer for Wavers {
    type Lock = Wavering;
    type Error = ErrInvalidEarlyTakeover;

    fn layer(self, inner: BoxLock, context: &LockContext) -> Result<Wavering, ErrInvalidEarlyTakeover> {
        Ok(Wavering { real: inner.clone(), early: BoxLock::new(self.0.layer(inner, context)?) })
    }
}

impl Lock for Wavering {
    type Events = BoxStream<'static, Result<LeaseEvent, ErrLock>>;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        self.real.get().await
    }

    async fn create(&self, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        self.early.create(claim).await
    }

    async fn update(&self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        self.early.update(seen, claim).await
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        let real = self.real.clone();
        let events = self.early.watch().await?.flat_map(move |event| {
            let is_free = matches!(&event, Ok(LeaseEvent::Seen(record)) if record.holder().is_none());
            let again = real.clone();
            let again = async move { Ok(LeaseEvent::Seen(again.get().await?.expect("a lease"))) };
            let again =
                if is_free { stream::once(again).left_stream() } else { stream::empty().right_stream() };
            stream::iter([event]).chain(again)
        });
        Ok(events.boxed())
    }
}

#[tokio::test(start_paused = true)]
async fn lease_that_is_free_and_then_held_again_is_taken_once() {
    let server = ApiServer::new();
    let a = replica(&server, "a").start();
    within(FIRST, "a leads", a.candidate().elected()).await;
    let wavers = Wavers(early(&server, "b"));
    let builder = builder("b").pod_uid(create(&server, "b"));
    let b = build(&server, "b", builder.layer_lock(wavers)).expect("a valid election").start();
    watches(&server, "b").await;
    drop(a);
    report_end(&server, "a");
    pass(SETTLE + SOON).await;
    // At once, or when the time of the lease that is shown as held is over.
    within(Duration::from_secs(16), "b leads", b.candidate().elected()).await;
    pass(Duration::from_secs(60)).await;
    assert!(b.candidate().is_leader());
    assert_eq!(spec(&server)["leaseTransitions"], 1);
}
