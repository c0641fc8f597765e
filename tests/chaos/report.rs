//! What the audit log says about a run. Nothing here comes from a candidate, except for the counts that are named as
//! such.
//!
//! - A fault's **leaderless time** is the longest time in which no write by the lease's holder took effect, of those that
//!   ended between the fault's beginning and the next one's. It includes the rest of the old lease, the acquisition
//!   and the new leader's first write. All candidates write all the time, so without a fault it is milliseconds.
//! - An **overlap** is the [`Judge`]'s: a write that arrived after another candidate's acquisition had taken effect.
//! - When the API server is killed, its last effects may be missing in the log. If an acquisition is missing, the
//!   next renewal shows it. Up to there the log cannot show an overlap with it, and would show the new holder's own
//!   writes as one. A missing write is not counted.
//! - A write with the answer 5xx counts as not done, for example because its client had disconnected. The report says
//!   separately how many of these would be overlaps.

use crate::{
    Failure,
    faults::Played,
    journal::{Journal, micros_at},
    lateness::{End, late},
};
use kube_leader_gate::testing::{Judge, LogTime, StrayKind, Verdict, WriteRecord};
use serde::Serialize;
use serde_json::json;
use std::{collections::HashSet, time::Duration};
use tokio::time::Instant;

/// From this status on, a write may still have taken effect.
const UNSURE: u16 = 499;

/// What is judged.
#[derive(Debug)]
pub struct Case<'a> {
    pub judge: Judge,
    pub candidates: Vec<String>,
    pub log: &'a [WriteRecord],
}

#[derive(Debug)]
pub struct Report {
    /// Fault by fault.
    pub faults: Vec<Measured>,
    /// Candidates' writes that took effect.
    pub writes: u64,
    /// Terms of another candidate than the previous one.
    pub takeovers: usize,
    /// Overlaps, if writes with an unknown outcome took effect.
    pub unknown: usize,
    /// Writes that arrived in time, and took effect after another candidate's acquisition.
    pub finished: usize,
    /// Writes of the last holder, after its lease had expired and before another candidate took it.
    pub run_out: usize,
    /// Writes of the last holder, after a theft, a deletion or its own release.
    pub not_held: usize,
    pub verdict: Verdict,
}

/// The result of one fault, up to the next one.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    pub label: String,
    pub takeovers: usize,
    /// `None` when no candidate wrote.
    pub leaderless: Option<Duration>,
    pub writes: usize,
    pub overlaps: usize,
}

impl Report {
    /// The error says that the judge would have missed an overlap.
    pub fn new(case: &Case<'_>, played: &[Played]) -> Result<Self, Failure> {
        case.prove()?;
        let verdict = case.judge.verdict(case.log);
        let stray = |kind: &StrayKind| verdict.strays.iter().filter(|it| it.kind == *kind).count();
        Ok(Self {
            faults: case.measure(played, &verdict),
            writes: verdict.admitted.values().sum(),
            takeovers: case.takeovers(&verdict).len(),
            unknown: case.unknown(),
            finished: late(case.log, &verdict.terms, &case.candidates)
                .iter()
                .filter(|it| it.end == End::Finished)
                .count(),
            run_out: stray(&StrayKind::RunOut),
            not_held: stray(&StrayKind::NotHeld),
            verdict,
        })
    }

    pub fn overlaps(&self) -> usize {
        self.verdict.overlaps().count()
    }

    /// Notes the result of each fault, the terms, and the writes that should not exist.
    pub fn note(&self, journal: &Journal) {
        for (number, measured) in self.faults.iter().enumerate() {
            journal.note("measured", json!({ "number": number, "fault": measured }));
        }
        for term in &self.verdict.terms {
            let ended = term.ended.map(|(moment, how)| (micros_at(moment.at), format!("{how:?}")));
            journal.write(&json!({
                "what": "term", "at": micros_at(term.acquired.at), "holder": term.holder,
                "transitions": term.transitions, "renewals": term.renewals,
                "renewed": micros_at(term.renewed.at), "ended": ended,
            }));
        }
        for stray in &self.verdict.strays {
            let at = micros_at(stray.received.at);
            let kind = format!("{:?}", stray.kind);
            journal.write(&json!({ "what": "stray", "at": at, "user": stray.user, "kind": kind }));
        }
    }
}

impl Case<'_> {
    fn measure(&self, played: &[Played], verdict: &Verdict) -> Vec<Measured> {
        let effects = self.effects(verdict);
        let takeovers = self.takeovers(verdict);
        let ends = played.iter().skip(1).map(|next| Some(next.begun)).chain([None]);
        let measure = |(fault, end): (&Played, Option<Instant>)| {
            let within = |at: Instant| at >= fault.begun && end.is_none_or(|end| at < end);
            let first = effects.partition_point(|at| *at < fault.begun);
            let last = end.map_or(effects.len(), |end| effects.partition_point(|at| *at < end));
            // The time that ends with the first of these writes began before the fault.
            let pairs = effects[first.saturating_sub(1)..last].windows(2);
            Measured {
                label: fault.label.clone(),
                takeovers: takeovers.iter().filter(|at| within(**at)).count(),
                leaderless: pairs.map(|pair| pair[1] - pair[0]).max(),
                writes: last - first,
                overlaps: verdict.overlaps().filter(|it| within(it.received.at)).count(),
            }
        };
        played.iter().zip(ends).map(measure).collect()
    }

    /// The times of effect of writes by the holder of that moment.
    fn effects(&self, verdict: &Verdict) -> Vec<Instant> {
        let strays: HashSet<_> = verdict.strays.iter().map(|it| (it.received.order, &it.user)).collect();
        let own =
            |it: &&WriteRecord| it.resource != "leases" && self.is_candidate(&it.user) && it.took_effect();
        let effects = self.log.iter().filter(own);
        let effects = effects.filter(|it| !strays.contains(&(it.received.order, &it.user)));
        let mut effects: Vec<_> = effects.filter_map(|it| Some(it.completed?.at)).collect();
        effects.sort_unstable();
        effects
    }

    /// The acquisitions by another candidate than the previous holder.
    fn takeovers(&self, verdict: &Verdict) -> Vec<Instant> {
        let terms: Vec<_> = verdict.terms.iter().filter(|it| self.is_candidate(&it.holder)).collect();
        let pairs = terms.windows(2).filter(|pair| pair[0].holder != pair[1].holder);
        pairs.map(|pair| pair[1].acquired.at).collect()
    }

    /// The overlaps among the writes whose effect the log does not show.
    fn unknown(&self) -> usize {
        let unsure = |it: &&WriteRecord| it.status == 0 || it.status >= UNSURE;
        let unsure = self.log.iter().filter(|it| it.resource != "leases").filter(unsure);
        let done = unsure.map(|it| WriteRecord { status: 200, ..it.clone() });
        let log: Vec<_> = self.lease_writes().cloned().chain(done).collect();
        self.judge.verdict(&log).overlaps().count()
    }

    /// Shows that the judge sees an overlap: the last holder's last write is repeated after another candidate's
    /// acquisition.
    fn prove(&self) -> Result<(), Failure> {
        let mut log: Vec<_> = self.lease_writes().cloned().collect();
        let write = self.log.iter().rfind(|it| it.resource != "leases" && it.took_effect());
        let write = write.ok_or("no candidate has written anything")?;
        let other = self.candidates.iter().find(|it| **it != write.user).ok_or("one candidate alone")?;
        let renewal = log.iter().rfind(|it| it.lease.is_some()).ok_or("no candidate has held the lease")?;
        let later = |moment: LogTime, by: u64| LogTime { order: moment.order + by, ..moment };
        let now = log.iter().chain([write]).filter_map(|it| it.completed).max().unwrap_or(write.received);
        let mut acquisition = WriteRecord { completed: Some(later(now, 1)), ..renewal.clone() };
        acquisition.user.clone_from(other);
        if let Some(lease) = &mut acquisition.lease {
            lease.holder_identity.clone_from(other);
            lease.lease_transitions = lease.lease_transitions.map(|it| it + 1);
        }
        let late = WriteRecord { received: later(now, 2), ..write.clone() };
        log.extend([acquisition, late]);
        match self.judge.verdict(&log).overlaps().count() {
            1 => Ok(()),
            seen => Err(format!("the judge saw {seen} overlaps where there was one").into()),
        }
    }

    fn lease_writes(&self) -> impl Iterator<Item = &WriteRecord> {
        self.log.iter().filter(|it| it.resource == "leases" && it.took_effect())
    }

    fn is_candidate(&self, name: &str) -> bool {
        self.candidates.iter().any(|it| it == name)
    }
}
