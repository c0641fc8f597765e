//! Which writes came to their end after another candidate had acquired the lease, and how.

use kube_leader_gate::testing::{LeaseTerm, LogTime, WriteRecord};
use serde::Serialize;
use std::time::Duration;
use tokio::time::Instant;

/// From this status on, the server has given the write up, or its outcome is unknown.
const UNSURE: u16 = 499;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// It took effect, and had arrived after the acquisition.
    Arrived,
    /// It took effect, and had arrived before the acquisition.
    Finished,
    /// The server refused it.
    Refused,
    /// The server gave it up.
    GivenUp,
}

/// A write that ended after another candidate's acquisition.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    pub end: End,
    pub received: LogTime,
    /// The first acquisition by another candidate since this one held the lease.
    pub acquired: LogTime,
    /// The time from that acquisition to the end of the write.
    pub by: Duration,
    /// Whether the new holder had written by then.
    pub after_a_write: bool,
    /// Whether the new holder had written before this write arrived.
    pub came_after_a_write: bool,
}

impl Late {
    pub const fn took_effect(&self) -> bool {
        matches!(self.end, End::Arrived | End::Finished)
    }
}

/// All of them, in no order. The times are the audit log's: a write has ended when its answer was complete, some time
/// after it took effect.
pub fn late(log: &[WriteRecord], terms: &[LeaseTerm], candidates: &[String]) -> Vec<Late> {
    let terms: Vec<_> = terms.iter().filter(|it| candidates.contains(&it.holder)).collect();
    let mut effects: Vec<_> = writes(log, candidates).filter(|it| it.took_effect()).collect();
    effects.sort_unstable_by_key(|it| it.completed);
    let judge = |write: &WriteRecord| {
        let completed = write.completed?;
        let last = terms.partition_point(|it| it.acquired < completed);
        let others = terms[..last].iter().rev().take_while(|it| it.holder != write.user);
        let acquired = others.last()?.acquired;
        let end = match write.status {
            _ if write.took_effect() && write.received > acquired => End::Arrived,
            _ if write.took_effect() => End::Finished,
            0 | UNSURE.. => End::GivenUp,
            _ => End::Refused,
        };
        let first = effects.partition_point(|it| it.completed <= Some(acquired));
        let of_others = effects[first..].iter().find(|it| it.user != write.user);
        let written = of_others.and_then(|it| it.completed);
        Some(Late {
            end,
            received: write.received,
            acquired,
            by: completed.at - acquired.at,
            after_a_write: written.is_some_and(|it| it < completed),
            came_after_a_write: written.is_some_and(|it| it < write.received),
        })
    };
    writes(log, candidates).filter_map(judge).collect()
}

fn writes<'a>(log: &'a [WriteRecord], candidates: &'a [String]) -> impl Iterator<Item = &'a WriteRecord> {
    log.iter().filter(|it| it.resource != "leases" && candidates.contains(&it.user))
}

/// A test of this file: `a` leads from 0, `b` from 10 and writes from 14 to 15.
pub fn write_is_late_by_its_end() {
    let origin = Instant::now();
    let at = |micros: u64| LogTime { at: origin + Duration::from_micros(micros), order: micros };
    let acquired = |holder: &str, micros: u64| LeaseTerm {
        user: holder.to_owned(),
        holder: holder.to_owned(),
        transitions: 0,
        acquired: at(micros),
        renewed: at(micros),
        heard: at(micros),
        duration: Duration::from_secs(1),
        renewals: 0,
        ended: None,
    };
    let write = |user: &str, received: u64, completed: u64, status: u16| WriteRecord {
        user: user.to_owned(),
        user_agent: String::new(),
        method: http::Method::PATCH,
        verb: "patch",
        path: String::new(),
        group: String::new(),
        version: String::new(),
        resource: "configmaps".to_owned(),
        namespace: None,
        name: None,
        subresource: None,
        dry_run: false,
        seen_version: None,
        received: at(received),
        completed: Some(at(completed)),
        status,
        lease: None,
    };
    let terms = [acquired("a", 0), acquired("outsider", 5), acquired("b", 10), acquired("b", 20)];
    let candidates = ["a", "b"].map(str::to_owned);
    for (received, completed, status, expected) in [
        (7, 9, 200, None),
        (7, 12, 200, Some((End::Finished, false))),
        (11, 12, 200, Some((End::Arrived, false))),
        (11, 30, 200, Some((End::Arrived, true))),
        (17, 30, 200, Some((End::Arrived, true))),
        (9, 30, 403, Some((End::Refused, true))),
        (9, 16, 504, Some((End::GivenUp, true))),
        (9, 12, 0, Some((End::GivenUp, false))),
    ] {
        let log = [write("b", 14, 15, 200), write("a", received, completed, status)];
        let found = late(&log, &terms, &candidates);
        assert!(found.iter().all(|it| it.acquired == at(10)), "a renewed term is no takeover: {found:?}");
        assert!(found.iter().all(|it| it.came_after_a_write == (received > 15)), "{found:?}");
        let found: Vec<_> = found.iter().map(|it| (it.end, it.after_a_write, it.by)).collect();
        let expected = expected.map(|(end, after)| (end, after, Duration::from_micros(completed - 10)));
        assert_eq!(found, Vec::from_iter(expected), "{received} to {completed}, {status}");
    }
}
