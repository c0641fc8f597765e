//! After 20 s, the log of a stop says what the stop still waits for, and which grace the pod needs.

use super::heard::Heard;
use crate::support::{begin_write, build, builder, gated, leading, pass, until, within, write};
use kube_client::Client;
use kube_leader_gate::{
    Candidate, Election, LeaseTiming,
    election::Running,
    testing::{ApiServer, Fault},
};
use std::{
    convert::Infallible,
    future::{Future, pending},
    time::Duration,
};

const MINUTE: Duration = Duration::from_secs(60);

fn slow(server: &ApiServer) -> (Election, Client) {
    let builder = builder("a").timing(LeaseTiming::default()).grace(MINUTE).drain_timeout(MINUTE / 2);
    let builder = builder.open_timeout(MINUTE * 5);
    let election = build(server, "a", builder).unwrap();
    let client = gated(server, &election, "a");
    (election, client)
}

async fn started((election, client): (Election, Client)) -> (Running, Client) {
    let running = election.start();
    within(MINUTE, "the candidate leads", running.candidate().elected()).await;
    (running, client)
}

/// Waits until the work of this leader has begun.
async fn has_begun(leader: &Candidate) {
    leader.elected().await;
    pass(Duration::from_secs(1)).await;
}

/// What a stop logs after 20 s, and nothing before.
async fn warned(heard: &Heard, stop: impl Future) -> String {
    let before = heard.events().len();
    let lines = || {
        let mut events = heard.events().split_off(before);
        events.retain(|event| event.message.starts_with("this stop takes long: "));
        events
    };
    let watched = async {
        pass(Duration::from_millis(19_990)).await;
        assert!(lines().is_empty(), "{:?}", lines());
    };
    let ended = async { tokio::join!(stop, watched) };
    within(MINUTE * 3, "the stop is over", ended).await;
    let [line] = &lines()[..] else { panic!("{:?}", lines()) };
    assert_eq!((&*line.level, &*line.values["needed"]), ("warn", "145"), "60 + 30 + 30 + 5 * 5");
    assert!(line.message.contains("terminationGracePeriodSeconds of at least 145"), "{}", line.message);
    line.message.clone()
}

#[tokio::test(start_paused = true)]
async fn slow_stop_says_what_it_waits_for() {
    let heard = Heard::listen();
    let server = ApiServer::new();
    let (election, _) = slow(&server);
    let leader = election.candidate();
    let run = election.run_until(async { drop(leader.elected().await) }, pending::<()>());
    let line = warned(&heard, Box::pin(run)).await;
    assert!(line.contains("waits for the workload to end;"), "{line}");

    let server = ApiServer::new();
    let (election, _) = slow(&server);
    let leader = election.candidate();
    let line =
        warned(&heard, Box::pin(election.run_while_leading(has_begun(&leader), |_, _| pending()))).await;
    assert!(line.contains("waits for the workload to end;"), "{line}");

    let server = ApiServer::new();
    let (a, client) = started(slow(&server)).await;
    let _hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let _writing = begin_write(a.candidate(), &client).await;
    let line = warned(&heard, a.stop()).await;
    assert!(line.contains("waits for admitted writes to finish (1 under way);"), "{line}");

    let server = ApiServer::new();
    let (a, client) = started(slow(&server)).await;
    let _refused = server.inject(Fault::status(504).resource("tokenreviews"));
    write(&client).await.unwrap_err();
    let line = warned(&heard, a.stop()).await;
    assert!(line.contains("without an answer, and may still take effect for 10"), "{line}");

    let server = ApiServer::new();
    let (election, _) = slow(&server);
    let _hang = server.inject(Fault::hang_before().resource("leases").verb("update"));
    let leader = election.candidate();
    let workload = async {
        leader.elected().await;
        pass(Duration::from_secs(10)).await;
    };
    let run = election.run_until(async { drop(leader.elected().await) }, workload);
    let line = warned(&heard, Box::pin(run)).await;
    assert!(line.contains("waits for the API server to confirm the release;"), "{line}");

    // The gate of this holder has not opened yet.
    let server = ApiServer::new();
    let (election, _) = slow(&server);
    let election = election.open_when(|_| pending::<Result<(), Infallible>>());
    let holder = election.candidate();
    let opens = async { until(MINUTE, "it holds the lease", || holder.opening().is_some()).await };
    let line = warned(&heard, Box::pin(election.run_until(opens, pending::<()>()))).await;
    assert!(line.contains("waits for the workload to end;"), "{line}");

    // The term gives way during the stop, and its work goes on.
    let server = ApiServer::new();
    let (election, _) = slow(&server);
    let leader = election.candidate();
    let gives_way = async {
        leader.elected().await;
        pass(Duration::from_secs(3)).await;
        leader.give_way();
    };
    let stop =
        async { tokio::join!(election.run_while_leading(has_begun(&leader), |_, _| pending()), gives_way) };
    let line = warned(&heard, Box::pin(stop)).await;
    assert!(line.contains("waits for the workload to end;"), "{line}");
}

#[tokio::test(start_paused = true)]
async fn slow_stop_with_a_grace_without_a_bound_is_logged() {
    let heard = Heard::listen();
    let election = build(&ApiServer::new(), "a", builder("a").grace(Duration::MAX)).unwrap();
    let leader = election.candidate();
    let workload = async {
        leader.elected().await;
        pass(MINUTE).await;
    };
    let run = election.run_until(async { drop(leader.elected().await) }, workload);
    let _ = within(MINUTE * 3, "the stop is over", run).await.unwrap();
    let events = heard.events();
    let line = events.iter().find(|event| event.message.starts_with("this stop takes long")).expect("a line");
    assert_eq!(line.values["needed"], u64::MAX.to_string());
}

/// It has no lease to release, so Kubernetes may kill it at any time.
#[tokio::test(start_paused = true)]
async fn slow_stop_of_a_follower_is_not_logged() {
    let heard = Heard::listen();
    let server = ApiServer::new();
    let (_b, _) = leading(&server, "b").await;
    let (election, _) = slow(&server);
    let run = election.run_until(async {}, pending::<()>());
    let _ = within(MINUTE * 2, "the stop is over", run).await.unwrap();
    let lines = heard.events();
    assert!(lines.iter().any(|event| event.message.starts_with("the workload did not end")), "{lines:?}");
    assert!(!lines.iter().any(|event| event.message.starts_with("this stop takes long")), "{lines:?}");
}
