//! What a crowd asks of the API server, and how long a lease stays without a leader, in a model.

use super::crowd_world::{Count, Crowd};
use crate::{
    election::crowd::{STANDBYS, longest_wait, longest_wait_at_the_start},
    lease::LeaseTiming,
};
use proptest::prelude::*;
use serde_json::json;
use std::time::Duration;

const CROWDS: [usize; 5] = [3, 10, 30, 100, 1_000];

fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// Until a candidate leads, at most, if one that lives may try at once: the longest wait, and its calls.
fn bound() -> Duration {
    longest_wait(LeaseTiming::fast().pause()) + ms(250)
}

/// The same for a candidate that begins.
fn bound_at_the_start() -> Duration {
    longest_wait_at_the_start(LeaseTiming::fast().pause()) + ms(250)
}

/// A crowd that has had time to fill its places.
fn settled(candidates: usize, seed: u64) -> Crowd {
    let mut crowd = Crowd::new(seed);
    crowd.start(candidates, ms(300));
    crowd.until_led(None, ms(3_000));
    crowd.pass(ms(2_500));
    crowd.count = Count::default();
    crowd
}

#[test]
fn requests_per_handover_do_not_grow_with_the_crowd() {
    for candidates in CROWDS {
        let (rounds, mut total) = (6, Count::default());
        let mut crowd = settled(candidates, 7);
        for _ in 0..rounds {
            let leader = crowd.leader().unwrap();
            crowd.count = Count::default();
            crowd.stop(leader);
            crowd.until_led(Some(leader), bound());
            crowd.start(1, ms(0));
            // Shorter than the time between two renewals.
            crowd.pass(ms(1_300));
            total.reads += crowd.count.reads;
            total.writes += crowd.count.writes;
            total.refused += crowd.count.refused;
        }
        assert!(total.writes <= 5 * rounds && total.reads <= 20 * rounds, "{candidates}: {total:?}");
    }
}

#[test]
fn a_steady_crowd_only_renews() {
    for candidates in CROWDS {
        let mut crowd = settled(candidates, 7);
        crowd.pass(ms(20_000));
        let Count { reads, writes, refused } = crowd.count;
        assert!(reads == 0 && refused == 0 && (9..=11).contains(&writes), "{candidates}: {:?}", crowd.count);
        assert_eq!(crowd.standbys().len(), 3.min(candidates - 1));
    }
}

#[test]
fn a_crash_costs_no_more_than_a_handover() {
    for candidates in CROWDS {
        let (rounds, mut total) = (3, Count::default());
        let mut crowd = settled(candidates, 7);
        for _ in 0..rounds {
            let leader = crowd.leader().unwrap();
            crowd.crash(leader);
            crowd.count = Count::default();
            crowd.until_led(Some(leader), ms(15_000) + bound());
            crowd.pass(ms(1_300));
            total.reads += crowd.count.reads;
            total.writes += crowd.count.writes;
            total.refused += crowd.count.refused;
            crowd.start(1, ms(0));
            crowd.pass(ms(1_300));
        }
        assert!(total.writes <= 5 * rounds && total.reads <= 20 * rounds, "{candidates}: {total:?}");
    }
}

#[test]
fn a_mass_start_needs_few_writes() {
    for candidates in CROWDS {
        for within in [ms(0), ms(50), ms(1_000)] {
            let mut crowd = Crowd::new(7);
            crowd.start(candidates, within);
            crowd.until_led(None, ms(500) + within + bound_at_the_start());
            crowd.pass(ms(1_300));
            assert!(crowd.count.writes <= 8, "{candidates} within {within:?}: {:?}", crowd.count);
        }
    }
}

/// The lease is there and has no holder.
#[test]
fn a_mass_start_on_a_free_lease_needs_few_writes() {
    for candidates in CROWDS {
        let mut crowd = settled(1, 7);
        let leader = crowd.leader().unwrap();
        crowd.stop(leader);
        crowd.pass(ms(100));
        crowd.count = Count::default();
        crowd.start(candidates, ms(20));
        crowd.until_led(None, bound_at_the_start());
        crowd.pass(ms(1_300));
        assert!(crowd.count.writes <= 8, "{candidates}: {:?}", crowd.count);
    }
}

#[test]
fn a_lone_candidate_takes_a_free_lease_nearly_at_once() {
    let mut crowd = settled(1, 7);
    let leader = crowd.leader().unwrap();
    crowd.stop(leader);
    crowd.pass(ms(100));
    crowd.start(1, ms(0));
    assert!(crowd.until_led(None, bound()) < ms(40));
}

#[test]
fn lost_standbys_cost_a_slot_each() {
    for candidates in CROWDS.into_iter().filter(|it| *it > 3) {
        for lost in 1..=3 {
            let mut crowd = settled(candidates, 7);
            let leader = crowd.leader().unwrap();
            for standby in crowd.standbys().into_iter().take(lost) {
                crowd.crash(standby);
            }
            crowd.stop(leader);
            crowd.until_led(Some(leader), bound());
            let remaining = crowd.standbys();
            crowd.pass(ms(1_300));
            assert!(crowd.count.writes <= 9 && crowd.count.reads <= 40, "{candidates}: {:?}", crowd.count);
            assert_eq!(remaining.len(), 3_usize.saturating_sub(lost + 1), "the lost are forgotten");
        }
    }
}

/// Nobody has had time to join again.
#[test]
fn handovers_in_quick_succession_stay_fast() {
    for candidates in [3, 5, 10, 20] {
        let (rounds, mut gaps) = (12, Vec::new());
        let mut crowd = settled(candidates, 7);
        for _ in 0..rounds {
            let leader = crowd.leader().unwrap();
            crowd.stop(leader);
            gaps.push(crowd.until_led(Some(leader), bound()));
            crowd.start(1, ms(0));
            crowd.pass(ms(30));
        }
        let most = if candidates == 3 { ms(15) } else { ms(60) };
        assert!(gaps.iter().all(|gap| *gap < most), "{candidates}: {gaps:?}");
    }
}

#[test]
fn a_leaving_standby_gives_its_place_back() {
    let mut crowd = settled(10, 7);
    let first = crowd.standbys()[0];
    crowd.stop(first);
    crowd.pass(ms(50));
    assert_eq!(crowd.standbys().len(), 2);
    assert!(!crowd.standbys().contains(&first));
    crowd.pass(ms(2_000));
    assert_eq!(crowd.standbys().len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// The list is only a hint. Whatever stands there, a candidate leads within the bound, and no two of them lead.
    #[test]
    fn any_list_delays_a_takeover_within_the_bound(
        seed in any::<u64>(),
        candidates in 1_usize..12,
        text in prop_oneof![
            Just("[]".to_owned()), Just("[\"candidate-0\",\"candidate-0\"]".to_owned()), Just("x".repeat(100_000)),
            Just(json!((0..5_000).map(|n| n.to_string()).collect::<Vec<_>>()).to_string()), ".{0,60}",
            prop::collection::vec(0..40, 0..6).prop_map(|them| {
                json!(them.iter().map(|it| format!("candidate-{it}")).collect::<Vec<_>>()).to_string()
            }),
        ],
        crashes in any::<bool>(),
        restamps in any::<bool>(),
    ) {
        let mut crowd = settled(candidates, seed);
        let leader = crowd.leader().unwrap();
        crowd.start(1, ms(0));
        crowd.pass(ms(100));
        crowd.outsider(|lease| lease["metadata"]["annotations"] = json!({ STANDBYS: text }));
        crowd.pass(ms(20));
        if crashes {
            crowd.crash(leader);
            crowd.until_led(Some(leader), ms(15_000) + bound());
        } else {
            crowd.stop(leader);
            crowd.pass(ms(2));
            // Another program writes the free lease again and again.
            let (mut waited, mut stamp) = (ms(0), 0);
            while restamps && crowd.leader().is_none() && waited < bound() {
                stamp += 1;
                if crowd.server.lease.as_ref().unwrap().holder().is_none() {
                    crowd.outsider(|lease| lease["spec"]["renewTime"] = json!(stamp.to_string()));
                }
                crowd.pass(ms(20));
                waited += ms(20);
            }
            crowd.until_led(Some(leader), bound());
        }
    }
}
