//! What the server's log says: which replica led and reconciled what, which one wrote without leading, and how long
//! each handover took.

use crate::operator::NAME;
use kube_leader_gate::testing::{Judge, LeaseTerm, StrayWrite, SuccessionKind, WriteRecord};
use std::{collections::BTreeSet, fmt, time::Duration};

pub struct Report {
    rows: Vec<Row>,
    pub changes: Vec<Change>,
    /// Writes by a replica that did not hold the lease: there must be none.
    pub strays: Vec<StrayWrite>,
}

struct Row {
    replica: String,
    terms: usize,
    writes: u64,
    objects: usize,
}

/// From one leader to the next.
#[derive(Debug)]
pub struct Change {
    pub from: String,
    pub to: String,
    pub kind: SuccessionKind,
    /// From the release, or from the lease's expiry, to the acquisition.
    pub leaderless: Duration,
    /// From the last write of the old leader to the first of the new one. `None` when either wrote nothing.
    pub writeless: Option<Duration>,
}

// === impl Report ===

impl Report {
    pub fn new(namespace: &str, replicas: &[String], log: &[WriteRecord]) -> Self {
        let verdict = Judge::new(namespace, NAME, replicas).verdict(log);
        let work: Vec<_> = log.iter().filter(|it| it.took_effect() && it.resource != "leases").collect();
        let rows = replicas.iter().map(|replica| Row {
            replica: replica.clone(),
            terms: verdict.terms.iter().filter(|term| term.user == *replica).count(),
            writes: verdict.admitted.get(replica).copied().unwrap_or_default(),
            objects: work
                .iter()
                .filter(|it| it.user == *replica && it.namespace.is_some())
                .filter_map(|it| it.name.as_deref())
                .collect::<BTreeSet<_>>()
                .len(),
        });
        let pairs = verdict.terms.windows(2).zip(verdict.successions());
        let changes = pairs.map(|(pair, succession)| Change {
            from: succession.from,
            to: succession.to,
            kind: succession.kind,
            leaderless: succession.gap,
            writeless: writeless(&work, &pair[0], &pair[1]),
        });
        Self { rows: rows.collect(), changes: changes.collect(), strays: verdict.strays }
    }
}

fn writeless(work: &[&WriteRecord], before: &LeaseTerm, after: &LeaseTerm) -> Option<Duration> {
    let done = |user: &str| {
        let mut done: Vec<_> =
            work.iter().filter(|it| it.user == user).filter_map(|it| it.completed).collect();
        done.sort();
        done
    };
    let last = done(&before.user).into_iter().rfind(|it| *it < after.acquired)?;
    let first = done(&after.user).into_iter().find(|it| *it > after.acquired)?;
    Some(first.at.saturating_duration_since(last.at))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "replica       terms  writes  objects")?;
        for Row { replica, terms, writes, objects } in &self.rows {
            writeln!(f, "{replica:<12} {terms:>6} {writes:>7} {objects:>8}")?;
        }
        writeln!(f, "\nlease passed                 free for   no writes for  after")?;
        for Change { from, to, kind, leaderless, writeless } in &self.changes {
            let how = if *kind == SuccessionKind::Graceful { "its release" } else { "its end" };
            let after = format!("{from} -> {to}");
            let writes = writeless.map_or_else(|| "-".to_owned(), millis);
            writeln!(f, "{after:<28} {:>9}  {writes:>13}  {how}", millis(*leaderless))?;
        }
        write!(f, "\nwrites by a replica that did not lead: {}", self.strays.len())
    }
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
