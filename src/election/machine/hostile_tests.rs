//! An API server that keeps its promises badly, and unexpected edits: no gate stays open by them, no candidate
//! calls without a pause, and none is stuck.

use super::{
    Call, GateChange, Machine, Order, Output, View,
    examples::{at, edited, held, leading, machine, preceding, preempted, with_term, without_term},
};
use crate::{
    election::{hooks::LeaseCall, lease_watch::WatchNews, preemption::HANDOVER},
    leadership::{Moment, Term},
    lease::{ErrLock, ErrLockKind, LeaseEvent, LeaseRecord, LeaseTiming},
};
use serde_json::json;
use std::time::Duration;

type Answer = Result<Option<LeaseRecord>, ErrLock>;

/// A candidate, and the rest of its process.
struct Process {
    machine: Machine,
    view: View,
    /// The end of the running term.
    deadline: Option<Moment>,
    /// How many terms have begun.
    opened: u32,
    /// Its calls.
    calls: Vec<LeaseCall>,
}

impl Process {
    fn new(machine: Machine, view: View) -> Self {
        let deadline = view.term.as_ref().map(|_| at(10));
        Self { machine, view, deadline, opened: 0, calls: Vec::new() }
    }

    /// Goes on until `end`. The API server answers each call at once, with `api`. Stops at 200 calls.
    fn play(&mut self, end: Moment, mut api: impl FnMut(&Call) -> Answer) {
        let mut polls = 0;
        while self.view.now < end && self.calls.len() < 400 {
            polls += 1;
            assert!(polls < 5_000, "it never waits");
            let now = self.view.now;
            self.view.is_valid = self.deadline.is_some_and(|deadline| now < deadline);
            self.view.is_open &= self.view.is_valid;
            match self.machine.poll(&self.view, || format!("{}", now.as_nanos())) {
                Output::Gate(change) => self.change(change),
                Output::Rewatch => self.machine.watched(WatchNews::Up, now),
                Output::Call(call) => {
                    self.calls.push(call.what);
                    let answer = api(&call);
                    // The gate closes before a release.
                    if call.what == LeaseCall::Release {
                        self.deadline = None;
                    }
                    self.machine.answered(answer, self.view.term.is_some(), now);
                }
                Output::GivenUp(_) => self.end(),
                Output::Wait(until) => self.view.now = until.min(end).max(now),
            }
        }
    }

    fn change(&mut self, change: GateChange) {
        match change {
            GateChange::Open(term, deadline) => {
                (self.view.term, self.deadline) = (Some(term), Some(deadline));
                (self.view.is_valid, self.view.is_open) = (true, true);
                self.opened += 1;
                self.machine.opened();
            }
            GateChange::Extend(deadline) => self.deadline = self.deadline.max(Some(deadline)),
            GateChange::Drain => self.view.is_open = false,
            GateChange::End(_) => self.end(),
        }
    }

    fn end(&mut self) {
        (self.view.term, self.deadline, self.view.is_open) = (None, None, false);
    }
}

fn leader() -> Process {
    let machine = leading();
    let view = with_term(&machine, 0);
    Process::new(machine, view)
}

/// An API server with one lease that changes each write: `bend` gets what stood there, and what was to be written.
fn bent(
    mut lease: LeaseRecord,
    bend: impl Fn(&LeaseRecord, LeaseRecord) -> LeaseRecord,
) -> impl FnMut(&Call) -> Answer {
    let mut version = 100;
    move |call| {
        let Some(claim) = &call.claim else { return Ok(Some(lease.clone())) };
        let seen = call.seen.as_ref().map(LeaseRecord::resource_version);
        if seen != Some(lease.resource_version()) {
            return Err(ErrLock::new(ErrLockKind::Conflict, "as the test has it"));
        }
        version += 1;
        lease = edited(&bend(&lease, lease.with(claim)), version, |_| ());
        Ok(Some(lease.clone()))
    }
}

fn refused(kind: ErrLockKind) -> Answer {
    Err(ErrLock::new(kind, "as the test has it"))
}

/// An admission webhook puts the spec back as it was, and changes something else, so the version is new. The other
/// candidates see no renewal.
#[test]
fn s6_renewal_that_the_others_do_not_see_renews_nothing() {
    let mut leader = leader();
    let lease = leader.machine.record().unwrap().clone();
    let api = bent(lease, |before, after| {
        edited(&after, 0, |lease| lease["spec"] = before.clone().into_json()["spec"].take())
    });
    leader.play(at(9), api);
    assert_eq!(leader.deadline, Some(at(10)), "{:?}", leader.calls);
}

/// A webhook keeps the holder in the lease, or all of it.
#[test]
fn release_that_releases_nothing_makes_no_storm() {
    let give_up = Order::GiveUp { failed: 0 };
    for (order, all) in [(give_up, false), (Order::Contend, false), (give_up, true), (Order::Contend, true)] {
        let mut leader = leader();
        let lease = leader.machine.record().unwrap().clone();
        let api = bent(lease, |before, after| {
            edited(&after, 0, |lease| {
                if all {
                    lease["spec"] = before.clone().into_json()["spec"].take();
                }
                lease["spec"]["holderIdentity"] = "me".into();
            })
        });
        leader.machine.order(order);
        leader.machine.give_way(at(0));
        leader.play(at(4), api);
        assert!(leader.calls.len() < 40, "{order:?} {all}: {:?}", leader.calls);
    }
}

/// A webhook lets no client change the annotations.
#[test]
fn acknowledgement_that_is_not_written_makes_no_storm() {
    for order in [Order::GiveUp { failed: 0 }, Order::Contend] {
        let mut leader = leader();
        let own = leader.machine.record().unwrap().clone();
        let taken = preempted(&own, 3);
        leader.machine.watched(WatchNews::Event(LeaseEvent::Seen(taken.clone())), at(0));
        let api = bent(taken, |before, after| {
            edited(&after, 0, |lease| {
                lease["metadata"]["annotations"] =
                    before.clone().into_json()["metadata"]["annotations"].take();
            })
        });
        leader.machine.order(order);
        leader.play(at(4), api);
        assert!(leader.calls.len() < 40, "{order:?}: {:?}", leader.calls);
    }
}

/// The successor's renewals are always faster, or the reads are old.
#[test]
fn acknowledgement_that_always_conflicts_makes_no_storm() {
    for order in [Order::GiveUp { failed: 0 }, Order::Contend] {
        let mut leader = leader();
        let own = leader.machine.record().unwrap().clone();
        let taken = preempted(&own, 3);
        leader.machine.watched(WatchNews::Event(LeaseEvent::Seen(taken.clone())), at(0));
        leader.machine.order(order);
        let mut version = 100;
        leader.play(at(4), |call| match call.what {
            LeaseCall::Read => {
                version += 1;
                Ok(Some(edited(&taken, version, |_| ())))
            }
            _ => refused(ErrLockKind::Conflict),
        });
        assert!(leader.calls.len() < 40, "{order:?}: {:?}", leader.calls);
    }
}

/// The same, and this candidate waits for a holder that it does not know by name.
#[test]
fn handover_that_cannot_be_written_anew_makes_no_storm() {
    let mut me = preceding();
    let other = edited(&held(1, "other", 0), 1, |lease| {
        lease["metadata"]["annotations"] = json!({ HANDOVER: "from 1 to 4, done" });
    });
    me.watched(WatchNews::Event(LeaseEvent::Seen(other.clone())), at(0));
    let mut me = Process::new(me, without_term(0));
    let api = bent(other, |before, after| {
        edited(&after, 0, |lease| {
            lease["metadata"]["annotations"] = before.clone().into_json()["metadata"]["annotations"].take();
        })
    });
    me.play(at(8), api);
    assert!(me.calls.len() < 40, "{:?}", me.calls);
}

/// Something between here and the API server answers each release with a conflict, for example an admission webhook. Or
/// the reads are old.
#[test]
fn release_that_always_conflicts_makes_no_storm() {
    let mut leader = leader();
    let lease = leader.machine.record().unwrap().clone();
    let mut version = 100;
    leader.machine.order(Order::GiveUp { failed: 0 });
    leader.play(at(4), |call| match call.what {
        LeaseCall::Read => {
            version += 1;
            Ok(Some(edited(&lease, version, |_| ())))
        }
        _ => refused(ErrLockKind::Conflict),
    });
    assert!(leader.calls.len() < 40, "{:?}", leader.calls);
}

/// An admission policy lets no client empty the holder. The candidate gives way, and no other one can lead.
#[test]
fn candidate_that_cannot_release_the_lease_for_another_leads_again() {
    for kind in [ErrLockKind::Refused, ErrLockKind::Forbidden, ErrLockKind::Conflict] {
        let mut leader = leader();
        let mut api = bent(leader.machine.record().unwrap().clone(), |_, after| after);
        leader.machine.give_way(at(0));
        leader.play(at(120), |call| match call.what {
            LeaseCall::Release => refused(kind),
            _ => api(call),
        });
        assert!(leader.opened > 0, "{kind:?}: {:?}", leader.calls);
    }
}

/// A restored backup brings the lease back as it was.
#[test]
fn s8_deleted_lease_that_comes_back_brings_no_term_back() {
    let leads = leader().view.term.unwrap().transitions();
    for deleted in [true, false] {
        let mut leader = leader();
        let own = leader.machine.record().unwrap().clone();
        let news = if deleted {
            LeaseEvent::Deleted(edited(&own, 3, |_| ()))
        } else {
            LeaseEvent::Seen(edited(&own, 3, |lease| lease["spec"]["holderIdentity"] = "thief".into()))
        };
        leader.machine.watched(WatchNews::Event(news), at(1));
        leader.view.now = at(1);
        let back = edited(&own, 4, |_| ());
        let mut api = bent(back.clone(), |_, after| after);
        if !deleted {
            leader.machine.gate(&leader.view);
            leader.end();
            leader.machine.watched(WatchNews::Event(LeaseEvent::Seen(back)), at(1));
        }
        leader.play(at(30), |call| match &call.claim {
            Some(_) if call.seen.is_none() => refused(ErrLockKind::Conflict),
            _ => api(call),
        });
        let term = leader.view.term.as_ref().map(Term::transitions);
        assert!(term > Some(leads), "deleted: {deleted}, {term:?} {:?}", leader.calls);
    }
}

/// A user shortens the successor's time, and it is over while a write of the preempted term is under way.
#[test]
fn candidate_acquires_nothing_while_its_preempted_term_drains() {
    for order in [Order::Contend, Order::Hold, Order::StayAway] {
        let mut leader = leader();
        let own = leader.machine.record().unwrap().clone();
        for version in [3, 4] {
            let short = edited(&preempted(&own, version), version, |lease| {
                lease["spec"]["leaseDurationSeconds"] = 1.into();
                lease["spec"]["renewTime"] = version.into();
            });
            leader.machine.watched(WatchNews::Event(LeaseEvent::Seen(short)), at(0));
        }
        leader.view.writing = true;
        leader.view.settles_at = at(20);
        leader.machine.order(order);
        leader.play(at(9), |call| match &call.claim {
            None => Ok(call.seen.clone()),
            Some(_) => refused(ErrLockKind::Refused),
        });
        assert!(!leader.calls.contains(&LeaseCall::Acquire), "{order:?}: {:?}", leader.calls);
        assert!(leader.view.term.is_some(), "{order:?}: its write goes on");
    }
}

/// Each of these is a valid timing.
#[test]
fn short_times_break_nothing() {
    let millis = Duration::from_millis;
    for retry in [10, 20, 39, 40, 100] {
        let timing = LeaseTiming::new(Duration::from_secs(1), millis(900), millis(retry)).unwrap();
        let mut spread = crate::election::spread::Spread::new(timing.pause());
        spread.lost_a_race();
        spread.observe(true, false, at(0), 1.0);
        assert!(spread.wait() < Duration::from_secs(1));
        spread.observe(false, false, at(1), 1.0);
    }
}

/// A lock over another store than Kubernetes' may hold any count.
#[test]
fn any_count_of_changes_is_taken_in() {
    for count in [i32::MAX as u64, i32::MAX as u64 + 1, u64::MAX - 1, u64::MAX] {
        let mut me = machine();
        let counts = |version, holder, count: u64| {
            edited(&held(version, holder, version), version, |lease| {
                lease["spec"]["leaseTransitions"] = count.into();
                lease["metadata"]["annotations"] = json!({ HANDOVER: format!("from {count} to {count}") });
            })
        };
        me.observe(counts(1, "other", 3), at(0));
        me.observe(counts(2, "third", count), at(1));
        me.observe(counts(3, "", 3), at(2));
        me.observe(counts(4, "other", count), at(3));
        let mut api = bent(counts(4, "other", count), |_, after| after);
        let mut me = Process::new(me, without_term(3));
        me.play(at(60), |call| api(call));
        assert_eq!(me.opened, 1, "{count}");
    }
}

/// A candidate takes a time that makes no sense for a typing error. No candidate writes such a time itself.
#[test]
fn s6_own_times_always_make_sense() {
    for days in [1, 2] {
        let seconds = days * 24 * 60 * 60;
        let (lease, renew) = (Duration::from_secs(seconds), Duration::from_secs(seconds - 60));
        let Ok(timing) = LeaseTiming::new(lease, renew, Duration::from_secs(60)) else { continue };
        let mut me = Machine::new(crate::lease::Identity::new("me").unwrap(), timing, None, Duration::ZERO);
        me.observe(
            edited(&held(1, "other", 0), 1, |it| it["spec"]["leaseDurationSeconds"] = seconds.into()),
            at(0),
        );
        me.observe_absence(None, at(1));
        assert_eq!(me.formers.until(at(1)), Some(at(seconds)), "{days} days");
    }
}

/// The lease was deleted and made anew, and the watch has told both, before the answer comes.
#[test]
fn answer_about_a_deleted_lease_hides_no_newer_one() {
    let anew = edited(&held(9, "other", 9), 9, |lease| lease["metadata"]["uid"] = "another".into());
    for what in [LeaseCall::Renew, LeaseCall::Read] {
        let mut leader = leader();
        let own = leader.machine.record().unwrap().clone();
        leader.view.now = at(1);
        if what == LeaseCall::Read {
            leader.machine.watched(WatchNews::Up, at(1));
        } else {
            leader.view.now = at(2);
        }
        let now = leader.view.now;
        let Output::Call(call) = leader.machine.poll(&leader.view, || "now".into()) else {
            panic!("no call")
        };
        assert_eq!(call.what, what);
        for event in [LeaseEvent::Deleted(edited(&own, 8, |_| ())), LeaseEvent::Seen(anew.clone())] {
            leader.machine.watched(WatchNews::Event(event), now);
        }
        let answer = if what == LeaseCall::Read { Ok(None) } else { refused(ErrLockKind::NotFound) };
        leader.machine.answered(answer, true, now);
        assert_eq!(leader.machine.record(), Some(&anew), "{what:?}");
        // What is known may still be old.
        leader.end();
        leader.play(now.saturating_add(Duration::from_millis(1)), |_| Ok(None));
        assert_eq!(leader.machine.record(), None, "{what:?}: {:?}", leader.calls);
    }
}
