//! Rule S13: a suspended machine. When it resumes, its clock has jumped, but its timers have not.

use crate::support::{
    FIRST, LEASE, SOON, build, builder, free, gated, is_cut_off, leads_by, lease, pass, until, within, write,
};
use kube_leader_gate::testing::{ApiServer, Fault, ManualClock};
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// A waiting task looks at the clock within a second of a resume.
const RESUMED: Duration = Duration::from_millis(1100);

#[tokio::test(start_paused = true)]
async fn s13_candidate_counts_suspended_time() {
    let server = ApiServer::new();
    let spec = json!({ "holderIdentity": "x", "leaseDurationSeconds": 15 });
    server.put("outsider", LEASE, lease(&spec)).unwrap();
    let clock = ManualClock::new();
    let a = build(&server, "a", builder("a").clock(Arc::new(clock.clone()))).unwrap().start();
    until(SOON, "a knows x", || a.candidate().holder().is_some()).await;
    pass(SOON).await;
    clock.advance(Duration::from_secs(15));
    leads_by(&clock, RESUMED, a.candidate()).await;
}

#[tokio::test(start_paused = true)]
async fn s13_leader_counts_suspended_time() {
    let server = ApiServer::new();
    free(&server);
    let clock = ManualClock::new();
    let election = build(&server, "a", builder("a").clock(Arc::new(clock.clone()))).unwrap();
    let client = gated(&server, &election, "a");
    let a = election.start();
    leads_by(&clock, FIRST, a.candidate()).await;
    let _hang = server.inject(Fault::hang_before());
    let hanging = tokio::spawn(async move { write(&client).await });
    until(SOON, "the write is under way", || a.candidate().leadership().writes_under_way() == 1).await;
    clock.advance(Duration::from_secs(10));
    assert!(!a.candidate().can_write());
    let result = within(RESUMED, "the write is cut off", hanging).await.unwrap();
    assert!(is_cut_off(&result), "{result:?}");
}
