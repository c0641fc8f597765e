//! A graceful handover: SIGTERM to the leader.

use super::round::{Values, calm, milliseconds, successor, values};
use crate::{failure::Failure, lane::Lane, site::now};
use rustix::process::Signal;
use std::time::Duration;

/// The fast peers are done by then, and the slow ones take seconds.
const QUIET: Duration = Duration::from_millis(300);

pub(crate) async fn handover(lane: &mut Lane) -> Result<Values, Failure> {
    let leader = calm(lane).await?;
    let old = lane.user(leader).to_owned();
    let quiet = lane.site.quiet(QUIET).await;
    let told = now();
    lane.signal(leader, Signal::TERM);
    let outcome = successor(lane, &old, told).await;
    drop(quiet);
    let (taken, written) = outcome?;
    lane.ended(leader).await?;
    lane.start(leader).await?;
    Ok(values([("lease", milliseconds(told, taken)), ("write", milliseconds(told, written))]))
}
