//! Tests of the pauses between two preemptions by one candidate.

use super::*;

/// Another candidate holds the lease at `at`. This one preempts it, and loses the lease a second later.
fn preempts(candidacy: &mut Candidacy, seconds: u64) {
    let seen = held(seconds + 1, "other", seconds, &json!({}));
    candidacy.observe(seen.clone(), at(seconds));
    assert!(!candidacy.backs_off(at(seconds)));
    assert_eq!(candidacy.decide(at(seconds), false), Decision::Preempt, "{seconds} s");
    let claim = candidacy.acquisition(at(seconds), seconds.to_string());
    candidacy.observe(written(seconds + 2, &seen, &claim), at(seconds));
    assert!(candidacy.precedence.preempted_recently(at(seconds)));
    candidacy.observe(held(seconds + 3, "other", seconds + 1, &json!({})), at(seconds + 1));
}

/// The other candidate takes the lease back each time, since each of the two precedes the other by its own rule. The
/// pauses double, until there was no preemption for twice the last pause.
#[test]
fn each_preemption_in_turn_waits_twice_as_long() {
    let mut candidacy = high();
    for (begins, next) in [(0, 15), (15, 45), (45, 105), (285, 300)] {
        preempts(&mut candidacy, begins);
        // Until the lease runs out, or until the pause is over.
        let until = at(next.min(begins + 61));
        assert_eq!(candidacy.decide(at(begins + 1), false), Decision::WaitUntil(until));
        assert!(candidacy.backs_off(at(next - 1)) && !candidacy.backs_off(at(next)), "{begins} s");
    }
    let recently = |seconds| candidacy.precedence.preempted_recently(at(seconds));
    assert!(recently(314) && !recently(315));
}

#[test]
fn pauses_between_preemptions_grow_to_an_hour() {
    let mut candidacy = high();
    let mut begins = 0;
    for pause in [15, 30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600] {
        preempts(&mut candidacy, begins);
        let over = begins + pause;
        assert!(candidacy.backs_off(at(over - 1)) && !candidacy.backs_off(at(over)), "{pause} s");
        begins = over;
    }
}
