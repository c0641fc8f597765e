//! Processor time and memory of candidates while nothing happens.

use super::{
    process::{cpu, resident},
    results::Results,
};
use crate::{
    failure::Failure,
    lane::Lane,
    peer::Peer,
    record::{Cost, Table},
    site::Site,
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

const REPLICAS: usize = 3;

/// Past the start.
const START: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(300);

/// How many have failed.
pub(super) async fn measure(site: &Arc<Site>, window: Duration, results: &Results) -> Result<u32, Failure> {
    let mut lanes = JoinSet::new();
    for peer in Peer::ALL {
        let site = site.clone();
        lanes.spawn(async move {
            let measured = timeout(PATIENCE + window, watch(&site, peer, window)).await;
            (peer, measured.unwrap_or_else(|_| Err("no result in time".into())))
        });
    }
    let mut outcomes = lanes.join_all().await;
    outcomes.sort_by_key(|it| it.0);
    let mut failures = 0;
    for (peer, outcome) in outcomes {
        let (values, failure) = match outcome {
            Ok(values) => (values, None),
            Err(error) => (BTreeMap::new(), Some(error.to_string())),
        };
        failures += results.keep(&Cost { table: Table::Idle, what: peer.to_string(), values, failure })?;
    }
    Ok(failures)
}

async fn watch(site: &Arc<Site>, peer: Peer, window: Duration) -> Result<BTreeMap<String, f64>, Failure> {
    let mut lane = Lane::open(site, peer, Duration::ZERO, REPLICAS, REPLICAS).await?;
    lane.settle().await?;
    sleep(START).await;
    let leader = lane.settle().await?;
    let restarts = lane.restarts;
    let processes: Vec<_> =
        lane.running().into_iter().filter_map(|it| Some((it, lane.process(it)?))).collect();
    let before: Vec<f64> = processes.iter().map(|(_, it)| cpu(*it)).collect::<Result<_, _>>()?;
    sleep(window).await;
    let minutes = window.as_secs_f64() / 60.0;
    let mut values = BTreeMap::<String, f64>::new();
    for ((seat, process), before) in processes.iter().zip(before) {
        let (role, share) = if *seat == leader { ("leader", 1.0) } else { ("follower", 2.0) };
        *values.entry(format!("{role} cpu")).or_default() += (cpu(*process)? - before) / minutes / share;
        *values.entry(format!("{role} kilobytes")).or_default() += resident(*process)? / share;
    }
    if lane.settle().await? != leader || lane.restarts != restarts {
        return Err("the leader has changed, or a process has ended, meanwhile".into());
    }
    Ok(values)
}
