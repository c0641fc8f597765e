//! A subscriber of the log that panics.

use crate::{
    faults::panics::{HANDOVER, SECOND},
    observers::listening,
    support::{build, builder, candidate, gated, pass, steal, within, write},
};
use futures_util::FutureExt;
use kube_leader_gate::testing::{ApiServer, Judge};
use std::{cell::Cell, panic::AssertUnwindSafe};
use test_support::assert_safety;
use tokio::time::timeout;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::{Layer, layer::Context};

thread_local! {
    /// The subscriber panics at this event of its thread. 0: it works.
    static LEFT: Cell<u64> = const { Cell::new(0) };
}

/// Panics once, if this thread wants it to.
#[derive(Debug)]
pub struct Fragile;

/// Whether this event of this thread counts.
pub fn wants(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("kube_leader_gate::") && LEFT.get() > 0
}

impl<S: Subscriber> Layer<S> for Fragile {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if wants(event.metadata()) {
            LEFT.set(LEFT.get() - 1);
            assert!(LEFT.get() > 0, "the subscriber breaks");
        }
    }
}

/// An election with a loss and a stop, to its end or to the panic.
#[tokio::test(start_paused = true)]
async fn s10_subscriber_that_panics_at_any_event_leaves_no_gate_open() {
    listening::begin();
    for events in 1.. {
        let server = ApiServer::new();
        let election = build(&server, "a", builder("a")).expect("valid");
        let (leader, client) = (election.candidate(), gated(&server, &election, "a"));
        let mut stays_open = false;
        LEFT.set(events);
        let played = AssertUnwindSafe(async {
            let a = election.start();
            // With a panic before, it never leads.
            let _ = timeout(SECOND, a.candidate().elected()).await;
            let _ = write(&client).await;
            steal(&server);
            pass(SECOND).await;
            stays_open = leader.can_write();
            let _ = write(&client).await;
            pass(HANDOVER).await;
            a.stop().await;
        });
        let _ = played.catch_unwind().await;
        let panicked = LEFT.replace(0) == 0;
        assert!(!stays_open && !leader.can_write(), "{events}");
        let b = candidate(&server, "b").start();
        within(HANDOVER, "b leads", b.candidate().elected()).await;
        let verdict = Judge::new("default", "operator", ["a", "b"]).verdict(&server.write_log());
        assert_safety!(verdict.strays.is_empty(), "{events}: {:?}", verdict.strays);
        if !panicked {
            assert!(events > 8, "only {events}");
            break;
        }
    }
}
