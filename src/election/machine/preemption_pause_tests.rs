//! Tests of the pauses between two preemptions by one candidate.

use super::*;

/// Another candidate holds the lease at `at`. This one preempts it, and loses the lease a second later.
fn preempts(machine: &mut Machine, seconds: u64) {
    let seen = held(seconds + 1, "other", seconds, &json!({}));
    machine.observe(seen.clone(), at(seconds));
    assert_ne!(machine.backs_off(at(seconds)), Some(true));
    assert_eq!(machine.decide(at(seconds), false), Decision::Preempt, "{seconds} s");
    let claim = machine.acquisition(at(seconds), seconds.to_string());
    machine.observe(written(seconds + 2, &seen, &claim), at(seconds));
    assert!(machine.entry.precedence.preempted_recently(at(seconds)));
    machine.observe(held(seconds + 3, "other", seconds + 1, &json!({})), at(seconds + 1));
}

/// The other candidate takes the lease back each time, since each of the two precedes the other by its own rule. The
/// pauses double, until there was no preemption for twice the last pause.
#[test]
fn each_preemption_in_turn_waits_twice_as_long() {
    let mut machine = high();
    for (begins, next) in [(0, 15), (15, 45), (45, 105), (285, 300)] {
        preempts(&mut machine, begins);
        // Until the lease runs out, or until the pause is over.
        let until = at(next.min(begins + 61));
        assert_eq!(machine.decide(at(begins + 1), false), Decision::WaitUntil(until));
        assert_eq!(machine.backs_off(at(next - 1)), Some(true), "{begins} s");
        assert_ne!(machine.backs_off(at(next)), Some(true), "{begins} s");
    }
    let recently = |seconds| machine.entry.precedence.preempted_recently(at(seconds));
    assert!(recently(314) && !recently(315));
}

#[test]
fn pauses_between_preemptions_grow_to_an_hour() {
    let mut machine = high();
    let mut begins = 0;
    for pause in [15, 30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600] {
        preempts(&mut machine, begins);
        let over = begins + pause;
        assert_eq!(machine.backs_off(at(over - 1)), Some(true), "{pause} s");
        assert_ne!(machine.backs_off(at(over)), Some(true), "{pause} s");
        begins = over;
    }
}
