//! What the rest of the process may know, and what is wrong, in words for a person.

use super::{known::Seen, state::Machine, terms::Reason};
use crate::{
    election::hooks::LeaseCall,
    leadership::{Moment, Term},
    lease::LeaseRecord,
};
use std::time::Duration;

impl Machine {
    /// The lease, as last seen.
    pub fn record(&self) -> Option<&LeaseRecord> {
        self.seen().map(|seen| &seen.stored.record)
    }

    /// Whether a term of this process goes on. Its gate may still wait for possible writers.
    pub(crate) fn has_term(&self) -> bool {
        self.terms.active().is_some()
    }

    /// The term of this process that goes on, if it is not given back already.
    pub(crate) fn kept_term(&self) -> Option<Term> {
        self.terms.active().map(|term| term.name.clone()).filter(|term| !self.terms.is_closing(term))
    }

    /// Whether this candidate may ask a holder for the lease.
    pub(crate) const fn has_priority(&self) -> bool {
        self.priority.is_some()
    }

    /// Whether the lease shows another holder.
    pub(crate) fn is_held_by_another(&self) -> bool {
        self.record().and_then(LeaseRecord::holder).is_some_and(|holder| holder != self.me.as_str())
    }

    /// Whether this candidate could take the lease now.
    pub(crate) fn is_free(&self, now: Moment) -> bool {
        !self.has_term() && self.free_in(now) == Some(Duration::ZERO)
    }

    /// How long this candidate leaves the lease as it is before it tries to take it. None if it does not know the lease.
    pub(crate) fn free_in(&self, now: Moment) -> Option<Duration> {
        self.is_free_from(now).map(|from| from.saturating_since(now))
    }

    /// Whether the last write or read has failed, and nothing has worked since.
    pub(crate) const fn is_failing(&self) -> bool {
        self.pace.failures > 0
    }

    /// Whether this candidate has lost so many races in a row that something is wrong. If another candidate is seen to win a race,
    /// the count begins anew.
    pub(crate) const fn loses_each_race(&self) -> bool {
        self.pace.failures > 8
    }

    /// The call under way, and when it was sent.
    pub(crate) fn under_way(&self) -> Option<(LeaseCall, Moment)> {
        self.calls.flight.as_ref().map(|flight| (flight.call.what, flight.sent))
    }

    /// Whether the call under way is a read that is due because no news came.
    pub(crate) fn polls(&self) -> bool {
        self.calls.flight.as_ref().is_some_and(|flight| flight.call.update.is_none() && !flight.doubts)
    }

    /// What is wrong with the lease, and what to do: a word for log fields, and a sentence.
    pub(crate) fn oddity(&self) -> Option<(&'static str, String)> {
        if let Some(differs) = self.known.altered {
            let details = format!(
                "the API server stores another value for {differs} than this candidate writes, so it cannot lead; exempt \
                 this lease from the webhook that changes it"
            );
            return Some(("altered", details));
        }
        let seen = self.seen()?;
        if self.is_of_this_process(seen) {
            return Some((
                "identity",
                "another election of this process uses this identity on this lease; give each its own lease"
                    .into(),
            ));
        }
        if self.is_namesake(seen) && seen.is_news {
            return Some((
                "identity",
                "another process uses this identity; give each process its own, for example the name of its pod, and of \
                 its container if more than one of a pod contend"
                    .into(),
            ));
        }
        seen.stored.record.oddity().map(|(kind, details)| (kind, details.to_owned()))
    }

    /// Whether another process of this crate holds the lease under this candidate's name. Another elector may have had the name
    /// before, and a person may have written it.
    fn is_namesake(&self, seen: &Seen) -> bool {
        let claims = seen.stored.claim().is_some_and(|claim| claim.process != self.process);
        claims && seen.stored.record.holder() == Some(self.me.as_str()) && !seen.own
    }

    /// Whether another election of this very process holds the lease under this candidate's name.
    fn is_of_this_process(&self, seen: &Seen) -> bool {
        self.is_namesake(seen) && seen.stored.claim().is_some_and(|claim| (self.runs_here)(claim.process))
    }

    /// Why this process does not take the lease at once, although the lease had its name when it began: in words for a person.
    pub(crate) fn earlier_process(&self) -> Option<&'static str> {
        let seen = self.seen().filter(|seen| !seen.is_news)?;
        if self.is_namesake(seen) && !self.is_of_this_process(seen) {
            return Some(
                "another process holds the lease under this identity, and may still run; this process waits for the lease's end",
            );
        }
        self.terms.closing.as_ref().filter(|closing| closing.reason == Reason::EndedSoon).map(|_| {
            "an earlier container of this pod held the lease for less than a lease duration; this process releases it for other \
             candidates once what that container has sent can no longer take effect"
        })
    }

    /// When this process first saw the claim of an earlier container of its pod. The writes of that container have ended by then,
    /// perhaps without an answer (rule S4).
    pub fn predecessor_seen(&self) -> Option<Moment> {
        self.known.predecessor.map(|predecessor| predecessor.seen)
    }

    /// The process that this candidate waits for behind its shut gate, and until when.
    pub fn waits_for(&self, now: Moment) -> Option<(&str, Moment)> {
        self.known.possible_writers.last_to_end(now)
    }

    /// The same in words for a person, if the wait is longer than this candidate's own lease lasts.
    pub(crate) fn long_wait(&self, now: Moment) -> Option<String> {
        let (name, until) = self.waits_for(now)?;
        let rest = until.saturating_since(now);
        let name = name.split('\n').next().unwrap_or_default();
        let name = if name.is_empty() { "a former holder".to_owned() } else { format!("{name:?}") };
        (rest > self.timing.lease_duration()).then(|| {
            format!(
                "{name} held this lease for a longer time than this candidate does, and may write for {} s; if its \
                 process has ended, delete the lease and restart the replicas",
                rest.as_secs()
            )
        })
    }

    /// A candidate that watches the lease and has asked for it takes it at once when it is free. This is the moment from which
    /// that candidate is late. None if the lease is not kept for such a candidate.
    pub(super) fn question_is_late_from(&self) -> Option<Moment> {
        let seen = self.seen().filter(|seen| seen.stored.is_free())?;
        let question = seen.stored.question().filter(|question| question.who != self.me);
        question.map(|_| seen.since.saturating_add(self.timing.pause()))
    }

    /// Which candidate has asked for the lease and does not take it, although the lease is free: in words for a person.
    pub(crate) fn unanswered_question(&self, now: Moment) -> Option<String> {
        self.question_is_late_from().filter(|from| *from <= now)?;
        let who = self.seen()?.stored.question()?.who.as_str();
        let time = self.timing.retry_period().mul_f64(1.25);
        Some(format!("{who:?}; if there is no such candidate, another one takes the lease in {time:?}"))
    }
}
