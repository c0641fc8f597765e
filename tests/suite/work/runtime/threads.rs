//! The watcher and its followers run on threads of their own.

use crate::support::{builder, within};
use futures_util::{StreamExt, stream};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Client,
    runtime::watcher::{self, Event},
};
use kube_leader_gate::{
    LeaseTiming, leadership::BootClock, lease::LeasePool, runtime::replay, testing::ApiServer,
};
use std::{
    future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

const ROUNDS: usize = 500;
const BOUND: Duration = Duration::from_secs(120);

fn version(number: u64) -> Event<ConfigMap> {
    let metadata = ObjectMeta {
        name: Some("x".into()),
        resource_version: Some(number.to_string()),
        ..ObjectMeta::default()
    };
    Event::Apply(ConfigMap { metadata, ..ConfigMap::default() })
}

/// Between the snapshot and the later changes no change is lost, repeated or reordered.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_change_is_lost_between_snapshot_and_stream() {
    let server = ApiServer::new();
    let service = server.service().user("a");
    // The default timing: busy threads must not cost the term.
    let election = builder("a")
        .timing(LeaseTiming::default())
        .clock(Arc::new(BootClock))
        .build_in(&LeasePool::over(move || Ok(Client::new(service.clone(), "default"))).expect("a client"))
        .expect("a valid election")
        .start();
    let leader = election.candidate().clone();
    let term = within(BOUND, "the candidate leads", leader.elected()).await;

    let over = Arc::new(AtomicBool::new(false));
    let goes_on = over.clone();
    let first = [Event::Init, Event::InitDone].map(Ok::<_, watcher::Error>);
    let changes = (1..).map(|number| Ok(version(number)));
    let events = stream::iter(first.into_iter().chain(changes))
        .take_while(move |_| future::ready(!goes_on.load(Ordering::Relaxed)));
    let (replay, watched) = replay(events, ());
    let watching = tokio::spawn(watched.for_each(|_| tokio::task::yield_now()));

    let follow = async {
        for _ in 0..ROUNDS {
            let mut events = replay.during(&leader, &term);
            let mut last = None;
            let mut changes = 0;
            while changes < 3 {
                let (object, is_change) = match events.next().await.expect("the term goes on") {
                    Event::InitApply(object) => (object, false),
                    Event::Apply(object) => (object, true),
                    Event::Init | Event::InitDone => continue,
                    Event::Delete(_) => unreachable!("nothing is deleted"),
                };
                let number: u64 = object.metadata.resource_version.as_ref().unwrap().parse().unwrap();
                if let Some(last) = last.filter(|_| is_change) {
                    // A consumer that lags behind the buffer receives the last state.
                    let is_next = number == last + 1 || number > last + 256;
                    assert!(is_next, "{number} after {last}");
                }
                last = Some(number);
                changes += u32::from(is_change);
            }
        }
    };
    within(BOUND, "all rounds", follow).await;
    over.store(true, Ordering::Relaxed);
    watching.await.expect("no panic");
}
