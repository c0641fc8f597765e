//! What the server has seen: who wrote while holding the lease, who without, and how long each handover took.

use crate::{
    cast::{Cast, NAMES},
    journal::Pages,
    replica::Replica,
    stage::{OUTSIDER, Stage},
    workload::Counts,
};
use kube_leader_gate::testing::{Judge, LeaseTerm, StrayKind, StrayWrite, TermEnding, WriteRecord};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

pub struct Verdict {
    pub rows: Vec<Row>,
    pub handovers: Vec<Handover>,
    /// Writes by a replica that did not hold the lease, and leases that were taken too early: in words, and how
    /// often. There must be none.
    pub offences: BTreeMap<String, u64>,
    /// Writes by the holder that reached the server after a theft or a deletion, before the holder learned of it.
    /// Each entry is how long after.
    pub overtaken: Vec<Duration>,
}

pub struct Row {
    pub name: &'static str,
    /// Writes that took effect at the server.
    pub admitted: u64,
    pub by_non_holder: usize,
    /// What the replica itself has counted.
    pub counts: Counts,
}

pub struct Handover {
    /// The index of its act.
    pub act: usize,
    /// None for the first term.
    pub from: Option<String>,
    pub to: String,
    pub acquired: Instant,
    pub since: Since,
    /// From there to the acquisition.
    pub taken: Duration,
    /// From there to the first write of the new leader; an outsider never writes.
    pub first_write: Option<Duration>,
}

/// What a handover's times are counted from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Since {
    Start,
    Release,
    RunOut,
    Deletion,
    ApiBack,
    /// A live lease was taken: the acquisition itself.
    Theft,
}

// === impl Verdict ===

impl Verdict {
    pub fn offence_count(&self) -> u64 {
        self.offences.values().sum()
    }

    pub fn new(stage: &Stage, cast: &Cast, pages: &Pages, log: &[WriteRecord]) -> Self {
        let found = Judge::new(&stage.namespace, stage.object, NAMES).verdict(log);
        let mut overtaken = Vec::new();
        let mut strays = Vec::new();
        for stray in &found.strays {
            match was_overtaken(stray, &found.terms) {
                Some(late) => overtaken.push(late),
                None => strays.push(stray),
            }
        }
        let row = |replica: &Replica| Row {
            name: replica.name(),
            admitted: found.admitted.get(replica.name()).copied().unwrap_or_default(),
            by_non_holder: strays.iter().filter(|it| it.user == replica.name()).count(),
            counts: replica.counts(),
        };
        let handovers = handovers(&found.terms, pages, log);
        let too_early = handovers.iter().filter(|it| it.since == Since::Theft && it.to != OUTSIDER);
        let too_early = too_early.map(|it| format!("{} took the lease while it was another's", it.to));
        let mut offences = BTreeMap::new();
        for offence in strays.iter().map(|it| in_words(it)).chain(too_early) {
            *offences.entry(offence).or_default() += 1;
        }
        Self { rows: cast.replicas.iter().map(row).collect(), handovers, offences, overtaken }
    }
}

/// How late a write was, if an outsider or a deletion had ended its writer's term. `None` in any other case: a
/// replica that releases its lease, or lets it expire, knows that its term is over.
fn was_overtaken(stray: &StrayWrite, terms: &[LeaseTerm]) -> Option<Duration> {
    if stray.kind != StrayKind::NotHeld {
        return None;
    }
    let own = terms.iter().rposition(|it| it.user == stray.user && it.acquired <= stray.received)?;
    let (ended, how) = terms[own].ended?;
    let by_outsider = || terms.get(own + 1).is_some_and(|it| it.holder == OUTSIDER);
    let unasked = how == TermEnding::Deleted || how == TermEnding::Replaced && by_outsider();
    unasked.then(|| stray.received.at.saturating_duration_since(ended.at))
}

fn in_words(stray: &StrayWrite) -> String {
    let how = match &stray.kind {
        StrayKind::Overlap(other) => format!("after {other} had acquired the lease"),
        StrayKind::NotHeld => "without holding the lease".to_owned(),
        StrayKind::RunOut => "after the lease had run out".to_owned(),
    };
    format!("{} wrote {how}", stray.user)
}

fn handovers(terms: &[LeaseTerm], pages: &Pages, log: &[WriteRecord]) -> Vec<Handover> {
    let before = std::iter::once(None).chain(terms.iter().map(Some));
    // Stopping the replicas at the end hands the lease over as well; that is not part of the play.
    let played = |term: &LeaseTerm| pages.ended.is_none_or(|ended| term.acquired.at < ended);
    let pairs = before.zip(terms).filter(|(_, term)| played(term));
    pairs.map(|(before, term)| handover(before, term, pages, log)).collect()
}

fn handover(before: Option<&LeaseTerm>, term: &LeaseTerm, pages: &Pages, log: &[WriteRecord]) -> Handover {
    let acquired = term.acquired.at;
    let act = pages.acts.iter().rposition(|began| *began <= acquired).unwrap_or_default();
    let (since, from) = match before.and_then(|it| Some((it, it.ended?))) {
        None => (Since::Start, pages.acts.first().copied().unwrap_or(acquired)),
        Some((_, (ended, TermEnding::Released))) => (Since::Release, ended.at),
        Some((_, (ended, TermEnding::Deleted))) => (Since::Deletion, ended.at),
        Some((before, (_, TermEnding::Replaced))) => replaced(before, term, pages),
    };
    let first_write = log
        .iter()
        .filter(|it| it.resource != "leases" && it.user == term.holder && it.took_effect())
        .filter(|it| it.received >= term.acquired)
        .min_by_key(|it| it.received)
        .map(|it| it.received.at.saturating_duration_since(from));
    Handover {
        act,
        from: before.map(|it| it.holder.clone()),
        to: term.holder.clone(),
        acquired,
        since,
        taken: acquired.saturating_duration_since(from),
        first_write: first_write.filter(|_| term.holder != OUTSIDER),
    }
}

/// A term that another has followed without a release.
fn replaced(before: &LeaseTerm, term: &LeaseTerm, pages: &Pages) -> (Since, Instant) {
    let acquired = term.acquired.at;
    let runs_out = before.runs_out();
    let back = pages.resumed.filter(|back| (before.renewed.at..=acquired).contains(back));
    match back {
        // Its own lease may be taken again at any time.
        Some(back) if term.holder == before.holder || (runs_out..=acquired).contains(&back) => {
            (Since::ApiBack, back)
        }
        _ if runs_out <= acquired => (Since::RunOut, runs_out),
        _ => (Since::Theft, acquired),
    }
}
