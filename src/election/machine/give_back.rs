//! How a candidate gives the lease back: under an order, or one that a late answer has brought (rules S4 and S5).

use super::{
    api_health::{FAILURE, Staleness},
    decide::Due,
    state::{Machine, Order, View},
};
use crate::{election::hooks::LeaseCall, leadership::Moment};

/// How much may fail before the lease is left to expire.
const MOST: u32 = 3 * FAILURE;

/// Why a candidate cannot release a lease that names it (rule S5).
const LEFT: &str = "an earlier process with this identity left the lease";

impl Machine {
    /// What a candidate does that does not lead and should not acquire. It releases a lease that an earlier claim
    /// still brings. With [`Order::Hold`] it does only that: a lease that it led in is released by a later order.
    pub(super) fn idle(&self, view: &View, order: Order) -> Due {
        // If the lease could not be released in time, it was left to expire. Do not touch it again.
        let in_time = !self.is_mine() || view.settles_at.max(view.now) < self.end();
        let gives_back =
            self.own.is_shut() || self.own.owes_an_acknowledgement() || order == Order::StayAway && in_time;
        match self.give_back(view, 0) {
            Ok(due) if gives_back => due,
            Err(Err(reason)) if gives_back && reason != LEFT => {
                (Some(LeaseCall::Read), self.health.next_look)
            }
            _ => (None, view.now.saturating_add(self.me.timing.retry_period())),
        }
    }

    /// Releases the lease if it belongs to this candidate (rules S4 and S5), and tells a preempting holder that the
    /// last write has ended. `failed`: how much has failed since the order. It waits for the own writes. Returns an error if
    /// there is nothing left to do, or nothing that can be done: it does not wait for former writers, and after an
    /// acquisition without an answer it reads once. [`idle`](Self::idle) releases what such an acquisition brings later.
    pub(super) fn give_back(&self, view: &View, failed: u32) -> Result<Due, Result<(), &'static str>> {
        let View { now, settles_at, .. } = *view;
        let stale = self.health.staleness;
        // One failure is enough: it only shortens the successor's wait.
        if self.owes_in_time(view) && failed < FAILURE {
            let reads = stale >= Staleness::IsOld;
            let call = if reads { LeaseCall::Read } else { LeaseCall::Acknowledge };
            return Ok((Some(call), settles_at));
        }
        let mine = self.is_mine();
        if !mine && !self.may_become_mine() {
            // There is nothing to release, whatever the API server answers.
            return Err(if self.is_left_to_this_name() { Err(LEFT) } else { Ok(()) });
        }
        if now < settles_at {
            let too_late = mine && self.end() <= settles_at;
            let reason = "a write that ended without an answer may still take effect";
            return if too_late { Err(Err(reason)) } else { Ok((None, settles_at)) };
        }
        if failed >= MOST {
            return Err(Err("the calls to the API server failed"));
        }
        if stale != Staleness::None {
            return Ok((Some(LeaseCall::Read), now));
        }
        if !mine {
            return Err(Err("an unanswered acquisition may still take effect"));
        }
        if self.formers.until(now).is_some() {
            return Err(Err("the former holder may still be writing"));
        }
        Ok((Some(LeaseCall::Release), now))
    }

    /// Whether this candidate gives the lease up for another one now. Its admitted writes finish first, while it renews.
    /// If it fails to release the lease, the lease runs out.
    pub(super) fn gives_way(&self, view: &View, order: Order) -> bool {
        let yields = order == Order::Contend && self.own.yields_until().is_some();
        yields && if view.term.is_some() { !view.writing } else { view.now < self.end() }
    }

    /// Whether the lease names this candidate, but holds no claim of this process. So others have to wait for its end.
    fn is_left_to_this_name(&self) -> bool {
        !self.is_mine() && self.record().is_some_and(|record| self.is_named_in(record))
    }

    /// Whether a candidate that preempted this one should learn of the end of its writes, and can before its wait is
    /// over.
    pub(super) fn owes_in_time(&self, view: &View) -> bool {
        self.own.owes_an_acknowledgement() && view.settles_at.max(view.now) < self.end()
    }

    /// The earliest moment at which the lease ends for the other candidates. They count from when they saw its last
    /// renewal, or a claim whose answer this candidate never got.
    pub(super) fn end(&self) -> Moment {
        self.claims.renewed.saturating_add(self.me.timing.lease_duration())
    }
}
