//! Which writes came to their end after another candidate had acquired the lease, and how.

use kube_leader_gate::testing::{LeaseTerm, LogTime, WriteRecord};
use serde::Serialize;
use std::time::Duration;

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
        let by_others = effects[first..].iter().take_while(|it| it.completed < Some(completed));
        Some(Late {
            end,
            received: write.received,
            acquired,
            by: completed.at - acquired.at,
            after_a_write: by_others.into_iter().any(|it| it.user != write.user),
        })
    };
    writes(log, candidates).filter_map(judge).collect()
}

fn writes<'a>(log: &'a [WriteRecord], candidates: &'a [String]) -> impl Iterator<Item = &'a WriteRecord> {
    log.iter().filter(|it| it.resource != "leases" && candidates.contains(&it.user))
}
