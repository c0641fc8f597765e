//! The races that the checker runs through, and how far. `make -C crates/proof model` goes further, by these variables:
//!
//! | variable | |
//! | --- | --- |
//! | `PROOF_FAULTS` | how many faults there are in a run; 1 if it is not set |
//! | `PROOF_STATES` | after how many states a check ends; 20,000 |
//! | `PROOF_SECONDS` | how long a run lasts in the model's time; 25 |
//! | `PROOF_TIME` | after how many seconds a check ends; 300 |

use super::{
    client_go::ClientGo,
    fault::Fault,
    race::Race,
    rival::{Rival, at},
    seat::{Elector, Seat},
    step::Step,
};
use jiff::Timestamp;
use kube_leader_gate::{LeaseTiming, internal::ASKED};
use stateright::{Checker, HasDiscoveries, Model, Property};
use std::{
    env,
    time::{Duration, Instant},
};

/// Candidates that begin together, after one of them has led for a while, as that one releases the lease or is restarted,
/// or as another one asks it for the lease.
#[derive(Clone)]
struct Election {
    begins: Vec<Race>,
    horizon: Duration,
}

impl Model for Election {
    type State = Race;
    type Action = Step;

    fn init_states(&self) -> Vec<Race> {
        self.begins.clone()
    }

    fn actions(&self, race: &Race, steps: &mut Vec<Step>) {
        if race.broken.is_none() {
            steps.extend(race.steps());
        }
    }

    fn next_state(&self, race: &Race, step: Step) -> Option<Race> {
        Some(race.after(step))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one candidate writes", |_, race: &Race| race.one_writes()),
            Property::always("a gate is open in the lease that its candidate knows", |_, race: &Race| {
                race.terms_are_of_their_lease()
            }),
            Property::always(
                "S7: a gate is closed once its candidate has heard of another holder",
                |_, race: &Race| race.gates_follow_the_lease(),
            ),
            Property::always("no other rule is broken", |_, race: &Race| race.broken.is_none()),
            // After a fault, since the states before it are others, and when a term has ended.
            Property::always("a candidate leads again", |_, race: &Race| {
                race.fault.is_none() && !race.ended || race.recovers().is_ok()
            }),
            Property::always("a late acquisition is given back", |_, race: &Race| {
                !race.landed_late || race.gives_back()
            }),
            Property::always("S9: hung calls cost no term", |_, race: &Race| race.hung_calls_cost_nothing()),
            Property::sometimes(CHANGES, |_, race: &Race| race.terms > 1),
        ]
    }

    fn within_boundary(&self, race: &Race) -> bool {
        let begin = self.begins.iter().map(|begin| begin.now).max().unwrap_or_else(|| at(0));
        race.now <= begin.saturating_add(self.horizon)
    }
}

/// The model shows no more than that it can happen.
const CHANGES: &str = "leadership changes";

const LATE: Duration = Duration::from_millis(3_900);

fn ours(mut rival: Rival, pace: u64) -> Seat {
    rival.late = LATE;
    Seat::of(Elector::Ours(Box::new(rival)), pace)
}

/// A lease that lasts longer than those of the others.
fn longer() -> LeaseTiming {
    "20/15/2".parse().unwrap()
}

/// One has a longer lease, one precedes it. One has a clock that is fast, one a wall clock
/// that stands still.
fn own_kind(faults: u8) -> Race {
    let fast = LeaseTiming::fast();
    let mut standing = Rival::new("c", 3, Some("high"), fast);
    standing.standing_clock = Some(Timestamp::UNIX_EPOCH);
    let seats = vec![
        ours(Rival::new("a", 1, None, fast), 105),
        ours(Rival::new("b", 2, Some("low"), longer()), 100),
        ours(standing, 98),
    ];
    Race::new(seats, faults)
}

/// One of them decides as client-go does.
fn mixed(faults: u8) -> Race {
    let (fast, go) = (LeaseTiming::fast(), ClientGo::new("go", Duration::from_secs(2), at(0)));
    let seats = vec![
        ours(Rival::new("a", 1, None, fast), 105),
        Seat::of(Elector::Go(go), 98),
        ours(Rival::new("c", 3, Some("high"), fast), 100),
    ];
    Race::new(seats, faults)
}

fn number(name: &str, default: u64) -> u64 {
    env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// The same race with a leader of half a minute.
fn settled(race: &Race) -> Race {
    race.clone().settled_after(Duration::from_secs(30))
}

/// The same race as that leader releases the lease.
fn released(race: &Race) -> Race {
    let settled = settled(race);
    let leader = settled.led.expect("a leader");
    let stopped = settled.after(Step::Fault(Fault::Stop, leader));
    Race { faults: race.faults, suffered: 0, ..stopped }
}

/// The same race as a new process takes the place of that leader.
fn restarted(race: &Race) -> Race {
    let settled = settled(race);
    let leader = settled.led.expect("a leader");
    let restarted = settled.after(Step::Fault(Fault::Restart, leader));
    Race { faults: race.faults, ..restarted }
}

/// The same race as a candidate has asked the leader for the lease, and a write of the leader has ended without an answer.
/// The one that has released the lease contends again soon.
fn asked(race: &Race) -> Race {
    let mut race = released(race);
    let soon = race.now.saturating_add(SOON);
    for seat in &mut race.seats {
        seat.back_at = seat.back_at.map(|_| soon);
    }
    for _ in 0..1_000 {
        let is_asked = race.server.lease.as_ref().is_some_and(|it| it.annotation(ASKED).is_some());
        let leader = race.author.map(|(i, _)| i).filter(|i| race.seats[*i].can_write(race.now));
        if let Some(leader) = leader.filter(|_| is_asked) {
            let lost = race.after(Step::Fault(Fault::LostWrite, leader));
            return Race { faults: race.faults, ..lost };
        }
        race.take(race.usual().expect("something happens"));
    }
    panic!("no candidate asks another one");
}

/// A candidate that has released the lease contends again after this time, where another one is to meet it.
const SOON: Duration = Duration::from_secs(2);

fn check(name: &str, race: Race) {
    let horizon = Duration::from_secs(number("PROOF_SECONDS", 25));
    let most = usize::try_from(number("PROOF_STATES", 20_000)).unwrap();
    let begins = vec![settled(&race), released(&race), restarted(&race), asked(&race), race];
    let election = Election { begins, horizon };
    let time = Duration::from_secs(number("PROOF_TIME", 300));
    let began = Instant::now();
    let checker = election
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AnyFailures)
        .target_state_count(most)
        .timeout(time)
        .spawn_bfs()
        .join();
    let whole = checker.state_count() < most && began.elapsed() < time;
    println!(
        "{name}: {} states, {} of them different, at most {} steps deep, in {:.1?}: {}",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        began.elapsed(),
        if whole { "all runs" } else { "the shortest runs" },
    );
    for (property, path) in checker.discoveries() {
        let last = path.last_state();
        let broken = last.broken.or_else(|| last.recovers().err());
        let (states, steps) = (checker.state_count(), path.into_actions());
        assert!(
            property == CHANGES,
            "the model breaks a rule after {states} states: {property} ({broken:?})\n{steps:#?}"
        );
    }
    let set = ["PROOF_FAULTS", "PROOF_STATES", "PROOF_SECONDS", "PROOF_TIME"]
        .into_iter()
        .any(|it| env::var(it).is_ok());
    assert!(set || checker.state_count() >= most, "only {} states", checker.state_count());
    checker.assert_any_discovery(CHANGES);
}

/// Each call takes a second, so everything else can happen during it.
fn slow(faults: u8) -> Race {
    Race { latency: 1, ..own_kind(faults) }
}

fn faults() -> u8 {
    u8::try_from(number("PROOF_FAULTS", 1)).unwrap()
}

#[test]
fn rules_hold_in_each_order_of_steps_and_faults() {
    check("own kind", own_kind(faults()));
}

#[test]
fn rules_hold_with_a_slow_api_server() {
    check("slow", slow(faults()));
}

#[test]
fn rules_hold_beside_client_go() {
    check("beside client-go", mixed(faults()));
}
