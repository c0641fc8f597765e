//! What the scenarios share.

use crate::{failure::Failure, lane::Lane, site::now};
use jiff::{SignedDuration, Timestamp};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::sleep;

/// Values by name: times in milliseconds, or counts per minute.
pub(crate) type Values = BTreeMap<String, f64>;

/// How long a takeover, and the write after it, may take. The slowest peer waits for the end of the lease twice.
pub(super) const TAKEOVER: Duration = Duration::from_secs(45);
pub(super) const WRITE: Duration = Duration::from_secs(20);

/// A lease duration, so that each phase of a peer that sleeps until the lease's end is as likely as any other.
const PHASES: f64 = 15.0;

/// Waits for a leader, and then until a random instant. Returns the leader.
pub(super) async fn calm(lane: &mut Lane) -> Result<usize, Failure> {
    lane.settle().await?;
    sleep(Duration::from_secs_f64(1.0 + fastrand::f64() * PHASES)).await;
    lane.settle().await
}

/// The next leader, when it is on the lease, and when it first writes.
pub(super) async fn successor(
    lane: &Lane,
    old: &str,
    from: Timestamp,
) -> Result<(Timestamp, Timestamp), Failure> {
    let (taken, user) = lane
        .site
        .wait(&lane.namespace, TAKEOVER, "the next leader", |ledger| ledger.taken(from, old))
        .await?;
    // The answer to its claim may be logged after its first write.
    let written = lane
        .site
        .wait(&lane.namespace, WRITE, "the next leader's first write", |ledger| ledger.written(from, &user))
        .await?;
    Ok((taken, written))
}

pub(super) fn milliseconds(from: Timestamp, until: Timestamp) -> f64 {
    length(until.duration_since(from))
}

pub(super) fn length(duration: SignedDuration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

pub(super) fn values<const N: usize>(values: [(&str, f64); N]) -> Values {
    values.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Sleeps until an instant of the machine's clock.
pub(super) async fn until(at: Timestamp) {
    sleep(Duration::try_from(at.duration_since(now())).unwrap_or_default()).await;
}
