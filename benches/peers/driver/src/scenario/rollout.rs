//! A rolling restart of three replicas, as a Deployment with `maxSurge: 1` and `maxUnavailable: 0` does it.

use super::round::{TAKEOVER, Values, WRITE, calm, length, values};
use crate::{failure::Failure, lane::Lane, ledger::Ledger, site::now};
use jiff::Timestamp;
use rustix::process::Signal;
use std::time::Duration;

const QUIET: Duration = Duration::from_millis(300);

pub(crate) async fn rollout(lane: &mut Lane) -> Result<Values, Failure> {
    calm(lane).await?;
    let mut old = lane.running();
    // A Deployment does not know which one leads.
    fastrand::shuffle(&mut old);
    let before = lane.site.look(&lane.namespace, terms);
    let began = now();
    let mut ends: Vec<(Timestamp, String)> = Vec::new();
    for seat in &old {
        let new = lane.free().ok_or("no seat for a new replica")?;
        lane.start(new).await?;
        let quiet = lane.site.quiet(QUIET).await;
        lane.signal(*seat, Signal::TERM);
        let end = lane.ended(*seat).await?;
        drop(quiet);
        ends.push((end, lane.user(*seat).to_owned()));
    }
    let gone: Vec<String> = ends.iter().map(|it| it.1.clone()).collect();
    let last = ends.last().map_or(began, |it| it.0);
    let is_new = |user: &str| !gone.iter().any(|it| it == user);
    let (site, namespace) = (&lane.site, &lane.namespace);
    let leads = |ledger: &Ledger| ledger.holder().is_some_and(is_new).then_some(());
    site.wait(namespace, TAKEOVER, "a new replica that leads", leads).await?;
    let writes =
        |ledger: &Ledger| ledger.writes.iter().find(|(at, user)| *at > last && is_new(user)).map(|it| it.0);
    let settled = site.wait(namespace, WRITE, "a new replica that writes", writes).await?;
    Ok(site.look(namespace, |ledger| {
        values([
            ("leaderless", length(ledger.leaderless(began, settled, &ends))),
            ("gap", ledger.longest_gap(began, settled).map_or(f64::NAN, length)),
            ("handovers", f64::from(terms(ledger) - before)),
        ])
    }))
}

/// How often the holder has changed.
fn terms(ledger: &Ledger) -> u32 {
    let mut holders: Vec<_> = ledger.claims.iter().filter_map(|it| it.holder.as_ref()).collect();
    holders.dedup();
    u32::try_from(holders.len()).unwrap_or(u32::MAX)
}
