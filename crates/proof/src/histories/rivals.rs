//! Several candidates on one lease, moved on by chance: no write of one may land while another's gate is open.

use crate::world::{Rival, Server, at};
use kube_leader_gate::{
    internal::{Handover, Order},
    leadership::Moment,
    lease::{LeaseEvent, LeaseRecord},
};
use proptest::prelude::*;
use serde_json::json;
use std::time::Duration;

/// Tells the watches, which tell the candidates when they do.
fn tell(rivals: &mut [Rival], event: &LeaseEvent) {
    for rival in rivals {
        rival.inbox.push_back(event.clone());
    }
}

/// A step of chance: who, what, how, how long.
type Step = (u8, u8, u8, u16);

/// What others than the candidates do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    /// Processes end and begin again.
    Restarts,
    /// A user deletes the lease, and shortens its time. The watches merge their events into the last one.
    Deletions,
    /// A user frees the lease or writes a name into it, and processes begin again. Each watch shows each state, late.
    Edits,
    /// A third elector takes a lease whose holder waits, for a short time, and releases it.
    Third,
    /// A user wipes the lease, removes or changes its time, or puts an earlier state of it back.
    Wipes,
}

impl Outside {
    fn restarts(self) -> bool {
        matches!(self, Self::Restarts | Self::Edits)
    }

    /// Whether a watch may lose news. Otherwise each one shows each state, late.
    fn hides(self) -> bool {
        !matches!(self, Self::Edits | Self::Third | Self::Wipes)
    }

    /// Changes the lease. Returns whether the watches have been told already.
    fn change(self, server: &mut Server, rivals: &mut [Rival], now: Moment, how: u8) -> bool {
        let Some(lease) = server.lease.clone() else { return false };
        let mut object = lease.clone().into_json();
        match (self, how % 8) {
            (Self::Deletions, 0 | 4) => return delete(server, rivals, now, how),
            (Self::Deletions, 1) if lease.holder().is_some() && all_know(server, rivals) => {
                object["spec"]["leaseDurationSeconds"] = 1.into();
            }
            (Self::Edits, 0 | 2) => object["spec"]["holderIdentity"] = "".into(),
            (Self::Edits, 1) => object["spec"]["holderIdentity"] = "thief".into(),
            (Self::Third, 0..=2) if Handover::under_way(&lease).is_some() && all_know(server, rivals) => {
                let time = format!("third at {}", server.version);
                object["spec"] = json!({ "holderIdentity": "third", "leaseDurationSeconds": 1 + how % 3,
                    "leaseTransitions": lease.transitions() + 1, "acquireTime": time, "renewTime": time });
            }
            (Self::Third, 3..) if lease.holder() == Some("third") => {
                let time = format!("third at {}", server.version);
                object["spec"] = json!({ "holderIdentity": "", "leaseDurationSeconds": 1,
                    "leaseTransitions": lease.transitions(), "acquireTime": time, "renewTime": time });
            }
            (Self::Wipes, _) if !all_know(server, rivals) => return false,
            (Self::Wipes, 0) => object["spec"] = json!({}),
            (Self::Wipes, 1) => object["spec"]["leaseDurationSeconds"] = json!(null),
            (Self::Wipes, 2) => object["spec"]["leaseDurationSeconds"] = json!(2_000_000_000),
            (Self::Wipes, 3 | 4) => object["spec"]["leaseDurationSeconds"] = json!(1),
            (Self::Wipes, 5) => object["metadata"]["annotations"] = json!({}),
            (Self::Wipes, 6) => {
                let Some(back) = lease.transitions().checked_sub(1) else { return false };
                object["spec"] = json!({ "holderIdentity": "", "leaseDurationSeconds": 1,
                    "leaseTransitions": back, "acquireTime": "once", "renewTime": "once" });
            }
            (Self::Wipes, 7) => object["spec"]["leaseTransitions"] = json!(lease.transitions() / 2),
            _ => return false,
        }
        server.put(object);
        false
    }
}

/// Whether all candidates know the lease as it is. What a user does to it can then hide no holder from them.
fn all_know(server: &Server, rivals: &[Rival]) -> bool {
    let version = server.lease.as_ref().map(LeaseRecord::resource_version);
    rivals.iter().all(|rival| rival.machine.record().map(LeaseRecord::resource_version) == version)
}

/// Deletes the lease, under the eyes of candidates that know the holder, or are told at once.
fn delete(server: &mut Server, rivals: &mut [Rival], now: Moment, how: u8) -> bool {
    let merges = how % 8 == 4;
    if !merges && !all_know(server, rivals) {
        return false;
    }
    let Some(last) = server.delete() else { return false };
    if merges {
        for rival in rivals.iter_mut() {
            rival.inbox.clear();
        }
    }
    tell(rivals, &LeaseEvent::Deleted(last));
    if merges {
        for rival in rivals {
            rival.hear(now);
        }
    }
    true
}

/// The next watch of a candidate begins, if it has ended one.
fn rewatch(rival: &mut Rival, server: &Server, outside: Outside, now: Moment) {
    if rival.rewatches && outside.hides() {
        rival.relists(server.lease.clone(), now);
    } else if rival.rewatches {
        rival.resumes(now);
    }
}

fn step(
    server: &mut Server,
    rivals: &mut [Rival],
    now: &mut Moment,
    (who, what, how, time): Step,
    outside: Outside,
) {
    let i = usize::from(who) % rivals.len();
    let version = server.version;
    let rival = &mut rivals[i];
    match what % 32 {
        24..=31 => {
            rewatch(rival, server, outside, *now);
            for _ in 0..4 {
                if how % 8 > 1 {
                    rival.hear(*now);
                }
                rival.turn(*now);
                if rival.land(server) {
                    break;
                }
                rival.answer(server, false, *now);
            }
        }
        0..=4 => {
            rival.turn(*now);
            rival.land(server);
            if how % 4 > 0 {
                // Told before the answer comes, or after it.
                if how % 2 == 0 && server.version > version {
                    let event = LeaseEvent::Seen(server.lease.clone().unwrap());
                    tell(rivals, &event);
                    rivals[i].hear(*now);
                    rivals[i].answer(server, false, *now);
                    return;
                }
                rival.answer(server, false, *now);
            }
        }
        5 => rival.turn(*now),
        6 if how % 4 == 0 => rival.give_way(*now),
        6 => rewatch(rival, server, outside, *now),
        7 => drop(rival.land(server)),
        8..=9 => rival.answer(server, how % 3 == 0, *now),
        10..=11 => (0..=how % 4).for_each(|_| rival.hear(*now)),
        12..=13 => *now = now.saturating_add(Duration::from_millis(u64::from(time) % 3_000)),
        14 => *now = now.saturating_add(Duration::from_millis(u64::from(time) % 16_000)),
        15 => {
            rival.turn(*now);
            *now = rival.until.min(now.saturating_add(Duration::from_secs(16))).max(*now);
        }
        16..=17 => rival.writing |= rival.can_write(*now),
        18 => rival.write_ends(how % 2 == 0 && rival.leads(*now), *now),
        19 => {
            let orders = [Order::Contend, Order::Contend, Order::Hold, Order::GiveUp { failed: 0 }];
            rival.order(orders[usize::from(how % 4)], *now);
        }
        // What the watch has not told is lost.
        20 if outside.hides() => {
            rival.relists(server.lease.clone(), *now);
        }
        21 if outside.restarts() && how % 8 == 0 => rival.restart(server, *now),
        22 if !server.late.is_empty() => server.land_late(usize::from(how) % server.late.len()),
        23 if outside.change(server, rivals, *now, how) => return,
        _ => {}
    }
    if server.version > version {
        let event = LeaseEvent::Seen(server.lease.clone().unwrap());
        tell(rivals, &event);
    }
}

fn hold(rivals: &mut [Rival], now: Moment) -> Result<(), TestCaseError> {
    for rival in rivals.iter_mut() {
        rival.runs_out(now);
        prop_assert!(rival.broken.is_none(), "{:?}: {rival:?}", rival.broken);
    }
    for (i, open) in rivals.iter().enumerate().filter(|(_, rival)| rival.can_write(now)) {
        for (_, other) in rivals.iter().enumerate().filter(|(j, _)| *j != i) {
            let writes = other.can_write(now) || other.writing && other.leads(now);
            prop_assert!(!writes, "{} and {} write at {now:?}", open.name, other.name);
            prop_assert!(
                now >= other.lands_until,
                "{} writes while one of {} may land, {now:?}",
                open.name,
                other.name
            );
        }
    }
    Ok(())
}

/// Nothing fails any more. One candidate leads soon, or one says why not, and no candidate calls all the time.
fn settle(server: &mut Server, rivals: &mut [Rival], now: &mut Moment) -> Result<(), TestCaseError> {
    let end = now.saturating_add(Duration::from_secs(90));
    let mut calls = 0;
    server.late.clear();
    for rival in rivals.iter_mut() {
        rival.answer(server, true, *now);
        rival.order(Order::Contend, *now);
        // The end of an order ends its term.
        rival.lose(*now);
        rival.resumes(*now);
    }
    while *now < end {
        let mut next = end;
        for i in 0..rivals.len() {
            for _ in 0..16 {
                let version = server.version;
                while !rivals[i].inbox.is_empty() {
                    rivals[i].hear(*now);
                }
                rivals[i].turn(*now);
                if rivals[i].rewatches {
                    rivals[i].resumes(*now);
                }
                let waits = rivals[i].flight.is_none();
                calls += u32::from(!waits);
                rivals[i].land(server);
                if server.version > version {
                    tell(rivals, &LeaseEvent::Seen(server.lease.clone().unwrap()));
                }
                rivals[i].answer(server, false, *now);
                if waits {
                    next = next.min(rivals[i].until);
                    break;
                }
                next = now.saturating_add(Duration::from_millis(1));
            }
            hold(rivals, *now)?;
        }
        if rivals.iter().any(|rival| rival.can_write(*now)) {
            return Ok(());
        }
        prop_assert!(calls < 2_000, "a storm: {calls}");
        *now = next;
    }
    let says = |rival: &Rival| rival.machine.oddity().is_some() || rival.machine.long_wait(*now).is_some();
    prop_assert!(rivals.iter().any(says), "nobody leads, and nobody says why: {now:?} {:?}", server.lease);
    Ok(())
}

fn play(steps: &[Step], outside: Outside) -> Result<usize, TestCaseError> {
    // The same steps bring the same history.
    fastrand::seed(7);
    let mut server = Server { version: 10, ..Server::default() };
    let longer = "20/15/2".parse().expect("a timing");
    let mut rivals =
        [Rival::new("a", None), Rival::timed("b", Some("low"), longer), Rival::new("c", Some("high"))];
    let (mut now, mut opened, mut last) = (at(0), 0, None);
    for step_ in steps {
        step(&mut server, &mut rivals, &mut now, *step_, outside);
        hold(&mut rivals, now)?;
        let open = rivals.iter().position(|rival| rival.can_write(now));
        opened += usize::from(open.is_some() && open != last);
        last = open.or(last);
    }
    settle(&mut server, &mut rivals, &mut now)?;
    Ok(opened)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((any::<u8>(), any::<u8>(), any::<u8>(), any::<u16>()), 1..600)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s4_no_gate_opens_while_a_rivals_write_may_land(steps in steps()) {
        play(&steps, Outside::Restarts)?;
    }

    #[test]
    fn s6_a_deleted_lease_opens_no_gate_too_early(steps in steps()) {
        play(&steps, Outside::Deletions)?;
    }

    #[test]
    fn s6_an_edited_lease_opens_no_gate_too_early(steps in steps()) {
        play(&steps, Outside::Edits)?;
    }

    #[test]
    fn s6_a_third_elector_opens_no_gate_too_early(steps in steps()) {
        play(&steps, Outside::Third)?;
    }

    #[test]
    fn s6_a_wiped_lease_opens_no_gate_too_early(steps in steps()) {
        play(&steps, Outside::Wipes)?;
    }
}

#[test]
fn chance_brings_many_changes_of_leadership() {
    let mut random = fastrand::Rng::with_seed(7);
    for outside in [Outside::Restarts, Outside::Deletions, Outside::Edits, Outside::Third, Outside::Wipes] {
        let opened: usize = (0..50)
            .map(|_| {
                let steps: Vec<Step> =
                    (0..600).map(|_| (random.u8(..), random.u8(..), random.u8(..), random.u16(..))).collect();
                play(&steps, outside).unwrap()
            })
            .sum();
        assert!(opened > 100, "{outside:?}: {opened}");
    }
}
