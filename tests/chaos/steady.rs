//! What an election costs the API server while nothing happens.

use crate::{
    Failure,
    apiserver::{Assets, AuditEvent},
    args::{Candidates, Steady},
    elector::Pace,
    journal::Journal,
    stage::Stage,
};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::{Instant, sleep};

const PACE: Pace = Pace { writers: 1, every: Duration::from_millis(100), restless: false };

pub async fn run(assets: &'static Assets, options: &Steady) -> Result<(), Failure> {
    let Candidates { timing, elector, .. } = &options.candidates;
    let journal = Journal::create(None, &format!("steady-{elector}"))?;
    let stage = Stage::set(assets, &options.candidates, PACE, journal).await?;
    let leader = stage.settled(Instant::now()).await?;
    // Past the start: the requests that find the leader are not steady.
    sleep(timing.lease_duration()).await;
    let from = jiff::Timestamp::now();
    sleep(Duration::from_secs(options.seconds)).await;
    if stage.settled(Instant::now()).await? != leader {
        return Err("the leader has changed".into());
    }
    let until = from + Duration::from_secs(options.seconds);
    let mut counts = BTreeMap::<(String, String), usize>::new();
    for event in stage.site.cluster.requests() {
        let within = event.request_received_timestamp >= from && event.request_received_timestamp < until;
        if within && event.object_ref.resource == "leases" && is_counted(&event) {
            *counts.entry((event.user.username, event.verb)).or_default() += 1;
        }
    }
    println!("requests for the lease in {} s at {timing} s, {elector}:", options.seconds);
    for identity in stage.roster.identities() {
        let role = if identity == stage.roster.identity(leader) { "leader" } else { "follower" };
        let own = counts.iter().filter(|((user, _), _)| *user == identity);
        let own: Vec<_> = own.map(|((_, verb), count)| format!("{count} {verb}")).collect();
        println!(
            "  {identity} ({role}): {}",
            if own.is_empty() { "none".to_owned() } else { own.join(", ") }
        );
    }
    stage.roster.stop_all(stage.stop_bound()).await.into_iter().next().map_or(Ok(()), Err)
}

/// Each request counts once, a watch when it begins.
fn is_counted(event: &AuditEvent) -> bool {
    if event.verb == "watch" { event.stage == "ResponseStarted" } else { event.stage != "ResponseStarted" }
}
