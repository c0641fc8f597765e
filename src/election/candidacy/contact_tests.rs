//! What a candidate makes of answers, of failures and of the silence of its watch.

use super::{
    contact::Contact,
    examples::{at, held},
};
use crate::{
    election::hooks::LeaseCall,
    lease::{ErrLockKind, LeaseTiming},
};
use std::time::Duration;

fn contact() -> Contact {
    Contact::new(LeaseTiming::fast())
}

/// Calls that failed, the last one at 10 s.
fn failed(times: usize) -> Contact {
    let mut contact = contact();
    for _ in 0..times {
        contact.fail(ErrLockKind::Timeout, false, at(10));
    }
    contact
}

#[test]
fn the_renewal_after_a_gain_or_a_failure_comes_early_and_the_next_one_does_not() {
    for (mut contact, call, recovered) in
        [(contact(), LeaseCall::Acquire, false), (failed(1), LeaseCall::Renew, true)]
    {
        assert_eq!(contact.recover(call, at(11)), recovered);
        assert!(contact.early > Duration::ZERO && contact.early < Duration::from_secs(1));
        assert!(!contact.recover(LeaseCall::Read, at(11)) && contact.early > Duration::ZERO);
        assert!(!contact.recover(LeaseCall::Renew, at(12)));
        assert_eq!(contact.early, Duration::ZERO);
    }
}

#[test]
fn a_failed_call_leaves_doubt_until_the_next_one_begins() {
    let mut contact = failed(1);
    assert!(contact.is_in_doubt());
    contact.begin(at(11));
    assert!(!contact.is_in_doubt());
}

/// A watch that begins shows that an outage is over. One lost call is no outage.
#[test]
fn a_watch_that_begins_ends_the_pause_of_an_outage() {
    for (failures, at_once) in [(1, false), (2, true), (3, true)] {
        let mut contact = failed(failures);
        contact.watch_begins(at(10));
        assert_eq!(contact.not_before == at(10), at_once, "{failures}");
    }
}

#[test]
fn a_watch_is_silent_if_it_does_not_show_what_an_answer_showed() {
    let mut contact = contact();
    assert!(!contact.is_watch_silent(Some(7), at(60)), "there is no watch");
    contact.watch_begins(at(10));
    assert!(!contact.is_watch_silent(Some(7), at(10)), "the answer was faster");
    assert!(contact.is_watch_silent(Some(7), at(11)));
    contact.watch_tells(&held(7, "other", 0), at(20));
    assert!(!contact.is_watch_silent(Some(7), at(60)), "it has shown it");
    assert!(contact.is_watch_silent(Some(8), at(60)));
}
