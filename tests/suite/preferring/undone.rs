//! What others undo is done again, and makes no storm.

use crate::support::{FIRST, LEASE, candidate, lease_writes, pass, priority::ranked, within};
use kube_leader_gate::testing::{ApiServer, Fault};
use std::time::Duration;

/// A lower one leads only while the preferred one is cut off.
#[tokio::test(start_paused = true)]
async fn preferred_candidate_leads_again_after_each_outage() {
    let server = ApiServer::new();
    let high = ranked(&server, "b", "high").start();
    within(FIRST, "the candidate leads", high.candidate().elected()).await;
    for pause in [0, 45, 45] {
        pass(Duration::from_secs(pause)).await;
        let low = candidate(&server, "a");
        // An outage of one candidate, in which another one takes the lease.
        let cut = server.inject(Fault::drop_before().user("b"));
        server.break_watches(|_| true, kube_leader_gate::testing::WatchBreak::Cut);
        let low = low.start();
        within(Duration::from_secs(16), "a leads", low.candidate().elected()).await;
        drop(cut);
        within(Duration::from_secs(4), "b leads again", high.candidate().elected()).await;
    }
}

/// A script, a controller or the garbage collector undoes each acquisition as soon as it sees it.
#[tokio::test(start_paused = true)]
async fn repeatedly_undone_acquisition_causes_no_flood() {
    for deletes in [true, false] {
        let server = ApiServer::new();
        let a = candidate(&server, "a").start();
        within(FIRST, "the candidate leads", a.candidate().elected()).await;
        let before = lease_writes(&server, "a").len();
        for _ in 0..10_000 {
            if server.object(LEASE).is_some_and(|lease| lease["spec"]["holderIdentity"] == "a") {
                if deletes {
                    server.delete("outsider", LEASE).unwrap();
                } else {
                    server
                        .edit("outsider", LEASE, |lease| lease["spec"]["holderIdentity"] = "".into())
                        .unwrap();
                }
            }
            pass(Duration::from_millis(1)).await;
        }
        let writes = lease_writes(&server, "a").len() - before;
        assert!((10..=170).contains(&writes), "deletes: {deletes}, {writes} writes in 10 s");
    }
}
