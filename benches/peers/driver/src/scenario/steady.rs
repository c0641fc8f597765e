//! Requests for the lease while nothing happens.

use super::round::Values;
use crate::{failure::Failure, lane::Lane, site::now};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::sleep;

/// Past the start, whose requests are not steady.
const START: Duration = Duration::from_secs(20);

pub(crate) async fn steady(lane: &mut Lane, window: Duration) -> Result<Values, Failure> {
    lane.settle().await?;
    sleep(START).await;
    let leader = lane.settle().await?;
    let from = now();
    sleep(window).await;
    let until = now();
    if lane.settle().await? != leader {
        return Err("the leader has changed meanwhile".into());
    }
    let leading = lane.user(leader).to_owned();
    let followers = f64::from(u32::try_from(lane.running().len().saturating_sub(1)).unwrap_or(1));
    let minutes = until.duration_since(from).as_secs_f64() / 60.0;
    let mut values = BTreeMap::from([("leader".to_owned(), 0.0), ("follower".to_owned(), 0.0)]);
    lane.site.look(&lane.namespace, |ledger| {
        for (at, user, verb) in &ledger.requests {
            if *at >= from && *at < until {
                let (role, share) = if *user == leading { ("leader", 1.0) } else { ("follower", followers) };
                let part = 1.0 / minutes / share;
                *values.entry(role.to_owned()).or_default() += part;
                *values.entry(format!("{role} {verb}")).or_default() += part;
            }
        }
    });
    Ok(values)
}
