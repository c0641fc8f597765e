//! How a candidate stands by: when it tries to take a free lease, and when it stands in the lease as a next holder.

use super::{
    claims::Hand,
    contact::Doubt,
    decide::{Due, Inputs},
    judge::Decision,
    state::{Candidacy, Known},
};
use crate::{
    election::{
        crowd::{STANDBYS, Standbys},
        hooks::LeaseCall,
        preemption::Handover,
    },
    leadership::Moment,
    lease::{Claim, LeaseRecord},
};
use std::collections::BTreeMap;

impl Candidacy {
    /// When this candidate may try to take a lease that has no holder, or whose holder's time is over. Others may try
    /// before it. It waits for no other candidate if the lease is, or was, its own.
    pub(in crate::election) fn turn(&self) -> Moment {
        let wait = || self.crowd.wait(&self.identity, &self.precedence);
        self.vacant_since().map_or(Moment::from_nanos(0), |since| since.saturating_add(wait()))
    }

    /// Whether this candidate goes before others by agreement, so that it need not spread its attempts by chance.
    pub(in crate::election) fn stands_by(&self) -> bool {
        self.crowd.stands_by(&self.identity)
    }

    /// Since when the lease of another candidate, or of none, is free to take.
    fn vacant_since(&self) -> Option<Moment> {
        match &self.known {
            Known::Nothing | Known::Absent { was_mine: true, .. } => None,
            Known::Absent { until, .. } => Some(*until),
            Known::Present { until, .. } => match self.hand() {
                Hand::None => self.crowd.free_since(),
                Hand::Other | Hand::Double => Some(*until),
                Hand::Inherited | Hand::Coordinator | Hand::Copy | Hand::Earlier | Hand::Current => None,
            },
        }
    }

    /// What the claim that takes the lease at `now` leaves of the standbys. None if there is nothing to change.
    pub(super) fn remaining_standbys(&self, now: Moment) -> Option<(&'static str, Option<String>)> {
        let stale = self.record().is_some_and(|record| record.annotation(STANDBYS).is_some());
        let free_for = match self.decide(now, false) {
            Decision::Take => self.vacant_since().map(|since| now.saturating_since(since)),
            _ => None,
        };
        let left = self.crowd.remaining(&self.identity, free_for.unwrap_or_default()).annotation();
        (stale || left.is_some()).then_some((STANDBYS, left))
    }

    /// When this follower asks for a place as a standby. Only a candidate that watches a live holder joins, and no
    /// candidate disturbs a handover.
    pub(super) fn joins_from(&self, inputs: &Inputs) -> Option<Due> {
        let at_ease = self.contact.is_watching() && !self.contact.is_failing();
        let from = self.crowd.joins_from().filter(|_| at_ease && !inputs.leads)?;
        self.joining(inputs.now).map(|_| (Some(LeaseCall::Join), from))
    }

    /// The standbys with this candidate among them, if it may join.
    fn joined(&self, now: Moment) -> Option<Standbys> {
        let record = self.of_another().filter(|record| record.oddity().is_none())?;
        let settled = self.coordinated.is_none() && Handover::under_way(record).is_none();
        let live = matches!(self.known, Known::Present { until, .. } if now < until);
        let joins = settled && live && self.opening.rests_until(now).is_none();
        self.crowd.standbys().with(&self.identity, &self.precedence).filter(|_| joins)
    }

    /// Makes the claim that joins the standbys. It changes nothing else.
    pub(in crate::election) fn joining(&self, now: Moment) -> Option<Claim> {
        self.with_standbys(&self.joined(now)?)
    }

    /// Whether this candidate stands in the lease of another one and should not, because it stops or stands down.
    pub(super) fn should_leave(&self) -> bool {
        let unsure = self.contact.doubt >= Doubt::IsOld || self.contact.is_failing();
        !self.has_left && !unsure && self.contact.is_watching() && self.leaving().is_some()
    }

    /// Makes the claim that takes this candidate out of the standbys. It changes nothing else.
    pub(in crate::election) fn leaving(&self) -> Option<Claim> {
        let standbys = self.crowd.standbys();
        self.of_another()?;
        standbys.place(self.identity.as_str())?;
        self.with_standbys(&standbys.clone().without(self.identity.as_str()))
    }

    fn with_standbys(&self, standbys: &Standbys) -> Option<Claim> {
        self.record().and_then(|record: &LeaseRecord| {
            record.annotated(BTreeMap::from([(STANDBYS, standbys.annotation())]))
        })
    }

    /// Records that this candidate has tried to leave its place. It tries once.
    pub(in crate::election) fn has_left(&mut self) {
        self.has_left = true;
    }

    /// Records that this candidate tries to join at `now`.
    pub(in crate::election) fn tries_to_join(&mut self, now: Moment) {
        self.has_left = false;
        self.crowd.tries_to_join(now);
    }
}
