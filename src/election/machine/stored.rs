//! A lease as the API server has stored it, and what the machine reads out of it.

use super::note::{self, ASKED, CLAIM, Claim, Question, WAITS_FOR, WaitsFor};
use crate::{
    leadership::Term,
    lease::{LeaseRecord, LeaseUpdate},
};
use jiff::Timestamp;
use std::{collections::BTreeMap, time::Duration};

/// A release writes this duration or a shorter one, as client-go's release does. If a person empties a lease, its duration stays.
const RELEASED: Duration = Duration::from_secs(1);

/// The uid of the pod in which the holder of this lease runs. None if the lease is free, if another elector holds it, or if the
/// holder does not know its pod.
#[must_use]
pub fn holder_pod_uid(record: &LeaseRecord) -> Option<String> {
    record.holder()?;
    Stored::new(record.clone()).claim().map(|claim| claim.pod.clone()).filter(|pod| !pod.is_empty())
}

#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) record: LeaseRecord,
    /// The wall clock of the holder at its last renewal. The machine compares it with other times in the lease, and never with a
    /// clock (rule S6). If the lease has no such time, this is the smallest time.
    pub(super) renewed: Timestamp,
    claim: Option<Claim>,
    /// The processes that the holder waits for.
    waits_for: WaitsFor,
    pub(super) question: Option<Question>,
}

impl Stored {
    pub(super) fn new(record: LeaseRecord) -> Self {
        let annotation = |name| note::text(record.annotation(name));
        let waits_for = note::read_waits_for(record.annotation(WAITS_FOR));
        Self {
            renewed: record.renew_time().and_then(|time| time.parse().ok()).unwrap_or(Timestamp::MIN),
            claim: annotation(CLAIM).and_then(Claim::read).filter(|_| waits_for.is_some()),
            waits_for: waits_for.unwrap_or_default(),
            question: annotation(ASKED).and_then(Question::read),
            record,
        }
    }

    /// The claim, if a process of this crate wrote the lease last. If another elector wrote it, the lease has another time than the
    /// claim. If a person wrote it, it has another name.
    pub(super) fn claim(&self) -> Option<&Claim> {
        let holder = self.record.holder();
        let is_of = |claim: &&Claim| holder.is_none_or(|holder| holder == claim.name);
        let is_here = |claim: &&Claim| claim.uid.is_empty() || claim.uid == self.record.uid();
        self.claim.as_ref().filter(|claim| claim.time == self.renewed).filter(is_of).filter(is_here)
    }

    /// Whether a holder of this crate holds the lease, and its duration is the one that the holder wrote.
    pub(super) fn is_as_written(&self) -> bool {
        let lasts = self.claim().filter(|_| self.record.holder().is_some()).map(|claim| claim.lasts);
        lasts.is_some() && self.record.duration() == lasts
    }

    /// The holder in the form of a [`WAITS_FOR`] list, or the last holder if a person has emptied the lease. None if the lease does
    /// not show it.
    pub(super) fn writer(&self) -> Option<String> {
        self.claim().map(Claim::writer).or_else(|| self.record.holder().map(str::to_owned))
    }

    /// The processes that the holder waits for. None if another elector holds the lease.
    pub(super) fn waits_for(&self) -> Option<&WaitsFor> {
        self.claim().map(|_| &self.waits_for)
    }

    /// The question to a holder of this crate that waits for its answer. None if the holder is of another elector, which reads no
    /// question. A question that names the holder itself, or the candidate that has released the lease, has had its answer.
    pub(super) fn question(&self) -> Option<&Question> {
        let claim = self.claim()?;
        self.question.as_ref().filter(|question| question.who.as_str() != claim.name)
    }

    /// How long the process that wrote this has held the lease. That process has written both times, so they are of one clock.
    pub(super) fn held(&self) -> Duration {
        let acquired = self.record.acquire_time().and_then(|time| time.parse::<Timestamp>().ok());
        let held = acquired.map(|acquired| self.renewed.duration_since(acquired));
        held.and_then(|held| held.try_into().ok()).unwrap_or_default()
    }

    /// Whether the last holder has released the lease. The release of this crate and of client-go leaves no holder, and a duration
    /// of a second at most.
    pub(super) fn is_released(&self) -> bool {
        self.is_free() && self.record.duration().is_some_and(|duration| duration <= RELEASED)
    }

    /// Whether no process holds the lease: it was released, or never held (no holder, no time, no claim). If a person has emptied
    /// the lease, it counts as held for its duration, from the moment at which this process saw it empty.
    ///
    /// **Earlier**: if a manifest makes the lease together with the Role, candidates take it at once. But if a candidate has seen a
    /// holder in this lease before, it waits for that holder.
    pub(super) fn is_vacant(&self) -> bool {
        let record = &self.record;
        let is_new = self.is_free() && record.renew_time().is_none() && record.annotation(CLAIM).is_none();
        is_new || self.is_released()
    }

    /// How long the holder may count on what it wrote. If the lease does not say it, this is `own`, the duration of this process,
    /// or the duration in a claim that a person has made void, if that is longer.
    pub(super) fn lasts(&self, own: Duration) -> Duration {
        let left = || self.claim.as_ref().map_or(own, |claim| own.max(claim.lasts));
        self.claim().map(|claim| claim.lasts).or(self.record.duration()).unwrap_or_else(left)
    }

    /// Whether the lease has no holder.
    pub(super) fn is_free(&self) -> bool {
        self.record.holder().is_none()
    }

    /// Whether this is of the holder of `was` in the same term, for example its renewal.
    pub(super) fn is_of_holder_of(&self, was: &Self) -> bool {
        !was.is_free()
            && self.record.holder() == was.record.holder()
            && self.record.term() == was.record.term()
    }

    /// Whether this is the release of the holder of `was`. A holder of this crate says in its release which process it is, and
    /// client-go's does not.
    pub(super) fn is_release_of(&self, was: &Self) -> bool {
        let process = |stored: &Self| stored.claim().map(|claim| claim.process);
        let is_by_holder = was.claim().is_none() || process(self) == process(was);
        self.is_released() && self.record.transitions() == was.record.transitions() && is_by_holder
    }

    /// Whether this is of the term after `was`, of a candidate of this crate which does not wait for `holder`: so that candidate
    /// has had a word that this holder has stopped.
    pub(super) fn vouches_for(&self, holder: &str, was: &Self) -> bool {
        let follows = self.record.transitions() == following(was.record.transitions());
        follows && self.waits_for().is_some_and(|waits_for| !waits_for.contains_key(holder))
    }

    /// Whether `other` is the same object with the same claim in it. The question may differ.
    pub(super) fn has_claim_of(&self, other: &Self) -> bool {
        fn said(record: &LeaseRecord) -> (Term, Option<&str>, Option<Duration>, [Option<&str>; 2]) {
            let times = [record.renew_time(), record.acquire_time()];
            (record.term(), record.holder(), record.duration(), times)
        }
        said(&self.record) == said(&other.record)
            && self.record.annotation(CLAIM) == other.record.annotation(CLAIM)
    }

    /// The update that asks the holder to release. None if the lease has no holder, or if it makes no sense.
    pub(super) fn asked(&self, question: &Question) -> Option<LeaseUpdate> {
        self.record.annotated(BTreeMap::from([(ASKED, Some(question.to_string()))]))
    }
}

/// The count of transitions after this one. The API stores an `int32`, so the count starts again after its maximum.
pub(super) fn following(transitions: u64) -> u64 {
    const MOST: u64 = i32::MAX as u64;
    if transitions >= MOST { 0 } else { transitions + 1 }
}
