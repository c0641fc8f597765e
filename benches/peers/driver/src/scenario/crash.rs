//! A crash: SIGKILL to the leader.

use super::round::{Values, calm, milliseconds, successor, until, values};
use crate::{failure::Failure, lane::Lane, site::now};
use jiff::SignedDuration;
use rustix::process::Signal;
use std::time::Duration;
use tokio::time::timeout;

/// The others are quiet from this long before the lease's end, for this long.
const EARLY: SignedDuration = SignedDuration::from_millis(100);
const QUIET: Duration = Duration::from_millis(400);

pub(crate) async fn crash(lane: &mut Lane) -> Result<Values, Failure> {
    let leader = calm(lane).await?;
    let old = lane.user(leader).to_owned();
    let killed = now();
    lane.signal(leader, Signal::KILL);
    lane.ended(leader).await?;
    let end = lane.site.look(&lane.namespace, |ledger| ledger.last().map(|it| it.end)).ok_or("no lease")?;
    until(end - EARLY).await;
    let quiet = timeout(EARLY.unsigned_abs(), lane.site.quiet(QUIET)).await;
    let outcome = successor(lane, &old, killed).await;
    drop(quiet);
    let (taken, written) = outcome?;
    lane.start(leader).await?;
    Ok(values([
        ("lease", milliseconds(killed, taken)),
        ("write", milliseconds(killed, written)),
        ("past-end", milliseconds(end, taken)),
    ]))
}
