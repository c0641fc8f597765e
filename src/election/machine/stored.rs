//! A lease as the API server has stored it, and what the machine reads out of it.

use super::note::{self, ASKED, CLAIM, Claim, Question, Rests, WAITS_FOR};
use crate::{
    leadership::Term,
    lease::{LeaseRecord, LeaseUpdate},
};
use jiff::Timestamp;
use std::{collections::BTreeMap, time::Duration};

/// A release writes this duration or less, as client-go's does. A lease that a person empties keeps its duration.
const RELEASED: Duration = Duration::from_secs(1);

/// The uid of the pod in which the holder of this lease runs. None if it is free, or if its holder is of another elector or
/// does not know its pod.
#[must_use]
pub fn holder_pod_uid(record: &LeaseRecord) -> Option<String> {
    record.holder()?;
    Stored::new(record.clone()).claim().map(|claim| claim.pod.clone()).filter(|pod| !pod.is_empty())
}

#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) record: LeaseRecord,
    /// The holder's wall clock. It is compared with other times in the lease, and never with a clock (rule S6). The
    /// smallest time if there is none.
    pub(super) renewed: Timestamp,
    claim: Option<Claim>,
    /// Whom the holder waits for.
    waits_for: Rests,
    pub(super) question: Option<Question>,
}

impl Stored {
    pub(super) fn new(record: LeaseRecord) -> Self {
        let annotation = |name| note::text(record.annotation(name));
        let rests = note::read_rests(record.annotation(WAITS_FOR));
        Self {
            renewed: record.renew_time().and_then(|time| time.parse().ok()).unwrap_or(Timestamp::MIN),
            claim: annotation(CLAIM).and_then(Claim::read).filter(|_| rests.is_some()),
            waits_for: rests.unwrap_or_default(),
            question: annotation(ASKED).and_then(Question::read),
            record,
        }
    }

    /// The claim, if the process that wrote the lease last is of this crate: another elector writes another time, and a person
    /// another name.
    pub(super) fn claim(&self) -> Option<&Claim> {
        let holder = self.record.holder();
        let is_of = |claim: &&Claim| holder.is_none_or(|holder| holder == claim.name);
        let is_here = |claim: &&Claim| claim.uid.is_empty() || claim.uid == self.record.uid();
        self.claim.as_ref().filter(|claim| claim.time == self.renewed).filter(is_of).filter(is_here)
    }

    /// Whether the claim of a holder of this crate stands with the duration that the holder wrote.
    pub(super) fn is_as_written(&self) -> bool {
        let lasts = self.claim().filter(|_| self.record.holder().is_some()).map(|claim| claim.lasts);
        lasts.is_some() && self.record.duration() == lasts
    }

    /// Whose lease it is, or was when a person emptied it. None if that is not shown.
    pub(super) fn writer(&self) -> Option<String> {
        self.claim().map(Claim::writer).or_else(|| self.record.holder().map(str::to_owned))
    }

    /// Whom the holder waits for, if it is of this crate.
    pub(super) fn waits_for(&self) -> Option<&Rests> {
        self.claim().map(|_| &self.waits_for)
    }

    /// The question, if the holder is of this crate and so can be asked. One that names the holder itself, or the candidate
    /// that has released the lease, has had its answer.
    pub(super) fn question(&self) -> Option<&Question> {
        let claim = self.claim()?;
        self.question.as_ref().filter(|question| question.who.as_str() != claim.name)
    }

    /// How long the process that wrote this has held the lease. It has written both times, so no two clocks are compared.
    pub(super) fn held(&self) -> Duration {
        let acquired = self.record.acquire_time().and_then(|time| time.parse::<Timestamp>().ok());
        let held = acquired.map(|acquired| self.renewed.duration_since(acquired));
        held.and_then(|held| held.try_into().ok()).unwrap_or_default()
    }

    /// Whether the last holder has released the lease, as this crate and client-go do: no holder, and a second at most.
    pub(super) fn is_released(&self) -> bool {
        self.record.holder().is_none() && self.record.duration().is_some_and(|it| it <= RELEASED)
    }

    /// Whether no process holds the lease: it was released, or never held (no holder, no time, no claim). One that a person has
    /// emptied counts as held for its duration from the moment at which it was seen so.
    ///
    /// **Earlier**: a lease that a manifest makes, together with the Role, is taken at once. A candidate that has seen a holder in
    /// it waits for that holder all the same.
    pub(super) fn is_vacant(&self) -> bool {
        let it = &self.record;
        let is_new = it.holder().is_none() && it.renew_time().is_none() && it.annotation(CLAIM).is_none();
        is_new || self.is_released()
    }

    /// How long the holder may count on this claim. `own` if the lease does not say it, or what a claim said that a person has
    /// left in it.
    pub(super) fn lasts(&self, own: Duration) -> Duration {
        let left = || self.claim.as_ref().map_or(own, |it| own.max(it.lasts));
        self.claim().map(|it| it.lasts).or(self.record.duration()).unwrap_or_else(left)
    }

    /// Whether the process that has claimed `other` has written this, too.
    pub(super) fn is_by(&self, other: &Self) -> bool {
        let writer = |it: &Self| it.claim().map(|it| it.process);
        writer(self).is_some() && writer(self) == writer(other)
    }

    /// Whether `other` is the same object with the same claim in it. The question may differ.
    pub(super) fn has_claim_of(&self, other: &Self) -> bool {
        fn said(it: &LeaseRecord) -> (Term, Option<&str>, Option<Duration>, [Option<&str>; 2]) {
            (it.term(), it.holder(), it.duration(), [it.renew_time(), it.acquire_time()])
        }
        said(&self.record) == said(&other.record)
            && self.record.annotation(CLAIM) == other.record.annotation(CLAIM)
    }

    /// The update that asks the holder to release. None if the lease has no holder, or makes no sense.
    pub(super) fn asked(&self, question: &Question) -> Option<LeaseUpdate> {
        self.record.annotated(BTreeMap::from([(ASKED, Some(question.to_string()))]))
    }
}
