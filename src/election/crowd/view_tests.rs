//! What a candidate learns of the others from one lease after the other.

use super::*;
use crate::election::{crowd::STANDBYS, preemption::Priority};
use serde_json::json;

fn at(seconds: u64) -> Moment {
    Moment::from_nanos(1_000_000_000_000).saturating_add(Duration::from_secs(seconds))
}

fn me() -> Identity {
    Identity::new("me").unwrap()
}

/// A candidate with a priority precedes those without one.
fn precedence(key: Option<&str>) -> Precedence {
    let ranked = |key| Priority::ranked(key, ["high", ""]).unwrap();
    Precedence::new(key.map(ranked), Duration::from_secs(15))
}

fn crowd() -> Crowd {
    Crowd::new(LeaseTiming::fast())
}

impl Crowd {
    /// Sees the lease of `holder` (empty for none) with these standbys.
    fn sees(&mut self, holder: &str, standbys: &[&str], seconds: u64) {
        self.sees_as(&precedence(None), holder, standbys, seconds);
    }

    fn sees_as(&mut self, own: &Precedence, holder: &str, standbys: &[&str], seconds: u64) {
        let metadata = json!({ "uid": "u", "resourceVersion": "1",
                               "annotations": { STANDBYS: json!(standbys).to_string() } });
        let lease = json!({ "metadata": metadata, "spec": { "holderIdentity": holder } });
        self.observe(&LeaseRecord::from_json(lease).unwrap(), &me(), own, at(seconds));
    }
}

#[test]
fn the_round_trip_grows_at_once_and_shrinks_slowly() {
    let mut crowd = crowd();
    for (answered, slot) in [(10, 30), (20, 60), (10, 45), (1_000, 100)] {
        crowd.answered(Duration::from_millis(answered));
        assert_eq!(crowd.pace().slot(), Duration::from_millis(slot), "answered after {answered} ms");
    }
}

#[test]
fn a_candidate_far_back_has_no_place_in_a_full_list() {
    let mut crowd = crowd();
    for (standbys, far_back, stands_by) in
        [(&["a", "b"][..], false, false), (&["a", "b", "c"], true, false), (&["a", "b", "me"], false, true)]
    {
        crowd.sees("holder", standbys, 0);
        assert_eq!((crowd.is_far_back(&me()), crowd.stands_by(&me())), (far_back, stands_by), "{standbys:?}");
    }
}

#[test]
fn a_place_is_free_under_a_holder_alone() {
    let mut crowd = crowd();
    crowd.sees("holder", &["a"], 0);
    assert!(crowd.joins_from().is_some_and(|from| from >= at(0)));
    crowd.sees("", &["a"], 1);
    assert_eq!(crowd.joins_from(), None, "the lease is free");
    crowd.sees("holder", &["a", "b", "c"], 2);
    assert_eq!(crowd.joins_from(), None, "the list is full");
    crowd.sees_as(&precedence(Some("high")), "holder", &["a", "b", "c"], 3);
    assert!(crowd.joins_from().is_some(), "it precedes a standby");
}

#[test]
fn each_attempt_to_join_doubles_the_wait_until_the_place_has_lasted() {
    let mut crowd = crowd();
    crowd.sees("holder", &["a"], 0);
    for tries in 0..3 {
        let draw = crowd.room.unwrap().draw;
        let wait = crowd.pace().before_joining(draw) * (1 << tries);
        assert_eq!(crowd.joins_from(), Some(at(60 * tries).saturating_add(wait)));
        crowd.tries_to_join(at(60 * (tries + 1)));
    }
    crowd.sees("holder", &["a"], 600);
    assert_eq!(crowd.tries, 3, "it has no place");
    crowd.sees("holder", &["a", "me"], 194);
    assert_eq!(crowd.tries, 3, "its place is new");
    crowd.sees("holder", &["a", "me"], 195);
    assert_eq!(crowd.tries, 0);
}

/// The place was free for a while, and another candidate took it: so few wait for one. If it was taken at once, many do.
#[test]
fn the_time_for_which_a_place_stayed_free_tells_the_size() {
    let learnt = |waited: u64| {
        let mut crowd = crowd();
        crowd.sees("holder", &["a", "b", "c"], 0);
        assert_eq!(crowd.size.most(), Some(super::super::pace::LARGEST), "nothing is known");
        crowd.sees("holder", &["a", "b"], 1);
        crowd.sees("holder", &["a", "b", "d"], 1 + waited);
        crowd.size.most().unwrap()
    };
    assert!(learnt(0) > 5_000.0 && learnt(1) < 20.0, "{} {}", learnt(0), learnt(1));
}

/// A place that was free when the candidate began says nothing: it may have been taken since long.
#[test]
fn a_place_that_was_free_before_tells_nothing() {
    let mut crowd = crowd();
    crowd.sees("holder", &["a", "b"], 0);
    crowd.sees("holder", &["a", "b", "c"], 1);
    assert_eq!(crowd.size.most(), Some(super::super::pace::LARGEST));
}

/// After sixteen pauses, 8 s, each candidate would have taken it.
#[test]
fn a_place_that_stays_free_shows_that_there_are_few() {
    let mut crowd = crowd();
    crowd.sees("holder", &["a", "b", "c"], 0);
    for (seconds, standbys, few) in [
        (10, &["a", "b"], false),
        (18, &["a", "b"], false),
        (19, &["a", "c"], false),
        (30, &["a", "c"], true),
    ] {
        crowd.sees("holder", standbys, seconds);
        assert_eq!(crowd.size.most().is_none(), few, "{seconds} s");
    }
}

#[test]
fn a_claim_leaves_the_standbys_whose_time_has_not_come() {
    let mut crowd = crowd();
    // A slot is 100 ms.
    crowd.answered(Duration::from_secs(1));
    crowd.sees("", &["a", "b", "me"], 0);
    let left = |millis| crowd.remaining(&me(), Duration::from_millis(millis)).len();
    assert_eq!([left(0), left(99), left(100), left(200), left(1_000)], [2, 2, 1, 0, 0]);
}
