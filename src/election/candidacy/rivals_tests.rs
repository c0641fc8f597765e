//! Several candidates on one lease, moved on by chance: no write of one may land while another's gate is open.

use super::{Task, examples::at, rivals_server::Server, rivals_world::Rival};
use crate::{
    election::preemption::Handover,
    leadership::Moment,
    lease::{LeaseEvent, LeaseRecord},
};
use proptest::prelude::*;
use std::time::Duration;

/// Tells the watches, which tell the candidates when they do.
fn tell(rivals: &mut [Rival], event: &LeaseEvent) {
    for rival in rivals {
        rival.inbox.push_back(event.clone());
    }
}

/// A step of chance: who, what, how, how long.
type Step = (u8, u8, u8, u16);

fn step(
    server: &mut Server,
    rivals: &mut [Rival],
    now: &mut Moment,
    (who, what, how, time): Step,
    deletes: bool,
) {
    let i = usize::from(who) % rivals.len();
    let version = server.version;
    let rival = &mut rivals[i];
    match what % 32 {
        24..=31 => {
            for _ in 0..4 {
                if how % 8 > 1 {
                    rival.hear(*now);
                }
                if how % 8 > 2 {
                    rival.agree();
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
        5 => drop(rival.turn(*now)),
        6 => rival.agree(),
        7 => drop(rival.land(server)),
        8..=9 => rival.answer(server, how % 3 == 0, *now),
        10..=11 => (0..=how % 4).for_each(|_| rival.hear(*now)),
        12..=13 => *now = now.saturating_add(Duration::from_millis(u64::from(time) % 3_000)),
        14 => *now = now.saturating_add(Duration::from_millis(u64::from(time) % 16_000)),
        15 => {
            let until = rival.turn(*now);
            *now = until.min(now.saturating_add(Duration::from_secs(16))).max(*now);
        }
        16..=17 => rival.writing |= rival.can_write(*now),
        18 if how % 2 == 0 && rival.leads(*now) => rival.writing = false,
        18 => rival.write_is_lost(*now),
        19 => {
            let tasks = [Task::Contend, Task::Contend, Task::Hold, Task::GiveUp { failed: 0 }];
            rival.order(tasks[usize::from(how % 4)], *now);
        }
        20 => rival.relists(server.lease.clone(), *now),
        21 if !deletes && how % 8 == 0 => rival.restart(server, *now),
        22 if !server.late.is_empty() => server.land_late(usize::from(how) % server.late.len()),
        23 if deletes && how % 4 == 0 => {
            // As far as this is promised: under the eyes of candidates that know the holder, and not during a handover.
            let current = server.lease.clone();
            let known = |rival: &Rival| {
                rival.candidacy.record().map(LeaseRecord::resource_version)
                    == current.as_ref().map(LeaseRecord::resource_version)
            };
            let handed_over = current.as_ref().and_then(Handover::of).is_none_or(|it| it.done);
            if handed_over
                && rivals.iter().all(known)
                && let Some(last) = server.delete()
            {
                tell(rivals, &LeaseEvent::Deleted(last));
                return;
            }
        }
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

fn play(steps: &[Step], deletes: bool) -> Result<usize, TestCaseError> {
    let mut server = Server { version: 10, ..Server::default() };
    let mut rivals =
        [Rival::new("a", None), Rival::new("b", Some("low")).asking(), Rival::new("c", Some("high"))];
    let (mut now, mut opened, mut last) = (at(0), 0, None);
    for step_ in steps {
        step(&mut server, &mut rivals, &mut now, *step_, deletes);
        hold(&mut rivals, now)?;
        let open = rivals.iter().position(|rival| rival.can_write(now));
        opened += usize::from(open.is_some() && open != last);
        last = open.or(last);
    }
    Ok(opened)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s4_no_gate_opens_while_a_rivals_write_may_land(
        steps in prop::collection::vec((any::<u8>(), any::<u8>(), any::<u8>(), any::<u16>()), 1..600),
    ) {
        play(&steps, false)?;
    }

    #[test]
    fn s6_a_deleted_lease_opens_no_gate_too_early(
        steps in prop::collection::vec((any::<u8>(), any::<u8>(), any::<u8>(), any::<u16>()), 1..600),
    ) {
        play(&steps, true)?;
    }
}

#[test]
fn chance_brings_many_changes_of_leadership() {
    let mut random = fastrand::Rng::with_seed(7);
    let opened: usize = (0..50)
        .map(|_| {
            let steps: Vec<Step> =
                (0..600).map(|_| (random.u8(..), random.u8(..), random.u8(..), random.u16(..))).collect();
            play(&steps, false).unwrap()
        })
        .sum();
    assert!(opened > 100, "{opened}");
}
