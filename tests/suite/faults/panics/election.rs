//! What an election calls: observers, probes, shutdowns, and what is below its lease calls.

use crate::{
    faults::panics::{HANDOVER, SECOND},
    support::{FIRST, SOON, build, builder, candidate, gated, is_not_leader, leading, pass, within, write},
};
use futures_util::FutureExt;
use http::Request;
use kube_client::Client;
use kube_leader_gate::{
    health::Health,
    lease::LeasePool,
    testing::{ApiServer, Fault},
};
use std::{
    future::{Future, pending},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    task::{Context, Poll},
};
use tower::{Service, service_fn};

/// A panic reaches the web server, as documented. The next probe is answered.
#[tokio::test(start_paused = true)]
async fn panic_of_a_readiness_condition_leaves_the_probes_alone() {
    let server = ApiServer::new();
    let (a, _client) = leading(&server, "a").await;
    let broken = Arc::new(AtomicBool::new(true));
    let breaks = broken.clone();
    let health = Health::new(a.candidate().clone(), SECOND).ready_if(move || {
        assert!(!breaks.load(SeqCst), "the condition");
        Ok::<_, &str>(())
    });
    catch_unwind(AssertUnwindSafe(|| health.answer("/readyz"))).expect_err("it panics");
    assert_eq!(health.answer("/livez").status, 200);
    broken.store(false, SeqCst);
    assert_eq!(health.answer("/readyz").status, 200);
}

/// What makes the clients of the lease calls, and the service in such a client. The term goes on.
#[tokio::test(start_paused = true)]
async fn s9_panic_below_the_lease_calls_does_not_cost_the_term() {
    for what in ["connect", "the service"] {
        let server = ApiServer::new();
        let (service, made, broken) =
            (server.service().user("a"), Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, breaks) = (made.clone(), broken.clone());
        let connect = move || {
            // The first one is made while the election is built.
            assert!(count.fetch_add(1, SeqCst) != 1 || what != "connect", "connect");
            let (mut inner, breaks) = (service.clone(), breaks.clone());
            let inner = service_fn(move |request: Request<kube_client::client::Body>| {
                assert!(what != "the service" || !breaks.swap(false, SeqCst), "the service");
                inner.call(request)
            });
            Ok(Client::new(inner, "default"))
        };
        let a = builder("a").build_in(&LeasePool::over(connect).expect("a client")).expect("valid");
        let client = gated(&server, &a, "a");
        let a = a.start();
        let term = within(FIRST, "a leads", a.candidate().elected()).await;
        // The first call that hangs meets the panic of `connect`. The second one gets a client.
        for _ in 0..2 {
            broken.store(true, SeqCst);
            let hangs = Fault::hang_before().resource("leases").user("a").verb("update").times(1);
            let _hangs = (what == "connect").then(|| server.inject(hangs));
            pass(9 * SECOND).await;
            assert_eq!(a.candidate().term().as_ref(), Some(&term), "{what}");
        }
        assert!(made.load(SeqCst) >= 3, "{what}");
        write(&client).await.expect("a leads");
        within(SOON, "a stops", a.stop()).await;
    }
}

/// Panics when it is dropped before its end.
struct Bomb;

impl Future for Bomb {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("in the drop");
    }
}

/// It reaches the caller, as documented. The gate is closed then, and the lease expires.
#[tokio::test(start_paused = true)]
async fn s10_panic_of_a_shutdown_or_a_drop_closes_the_gate() {
    for what in ["shutdown", "shutdown of leading-only work", "drop of the workload"] {
        let server = ApiServer::new();
        let election = build(&server, "a", builder("a").grace(SECOND)).expect("valid");
        let (leader, client) = (election.candidate(), gated(&server, &election, "a"));
        let shutdown = async {
            leader.elected().await;
            assert!(what == "drop of the workload", "the shutdown");
        };
        let run: Pin<Box<dyn Future<Output = ()>>> = match what {
            "shutdown" => Box::pin(async {
                let _ = election.run_until(shutdown, pending::<()>()).await;
            }),
            "drop of the workload" => Box::pin(async {
                let _ = election.run_until(shutdown, Bomb).await;
            }),
            _ => Box::pin(async {
                let _ = election.run_while_leading(shutdown, |_, _| pending::<()>()).await;
            }),
        };
        within(20 * SECOND, "it ends", AssertUnwindSafe(run).catch_unwind()).await.expect_err(what);
        assert!(!leader.can_write(), "{what}");
        assert!(is_not_leader(&write(&client).await), "{what}");
        within(SOON, "the end is reported", leader.ended()).await.map_or_else(drop, drop);
        let b = candidate(&server, "b").start();
        within(HANDOVER, "b leads", b.candidate().elected()).await;
    }
}
