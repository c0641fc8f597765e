//! Each timing that is accepted is in its documented range, and reads the same again.

use kube_leader_gate::LeaseTiming;
use std::time::Duration;

pub(super) const SEEDS: &[&str] = &[
    "default",
    "fast",
    "15/10/2",
    "137/107/26/2.5",
    "2/1.2/0.3",
    "1/0.999999999/0.01/0.02",
    "2147483647/2147483646/0.01",
    "0000000015/10.000/2.0",
    "\u{0}\u{f}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{a}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{2}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{1}\u{0}\u{0}\u{0}\u{0}",
];

pub(super) const WORDS: &[&str] = &[
    "/",
    ".",
    "0",
    "1",
    "2",
    "10",
    "15",
    "137",
    "107",
    "26",
    "2147483647",
    "2147483648",
    "18446744073709551615",
    "18446744073709551616",
    "0.000000001",
    "0.0000000001",
    "999999999",
    "+",
    "-",
    "e3",
    " ",
    "default",
    "fast",
    "\u{0}",
    "\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}",
    "\u{7f}",
];

/// A text; or, after a zero byte, up to four durations of seconds (8 bytes) and nanoseconds (4 bytes).
pub(super) fn body(bytes: &[u8]) {
    if let [0, numbers @ ..] = bytes {
        let times: Vec<Duration> = numbers.chunks_exact(12).map(duration).collect();
        if let [lease, renew, retry, rest @ ..] = times.as_slice() {
            match (LeaseTiming::new(*lease, *renew, *retry), rest.first()) {
                (Ok(timing), None) => check(&timing),
                (Ok(timing), Some(call)) => {
                    check(&timing);
                    if let Ok(timing) = timing.with_call_timeout(*call) {
                        assert_eq!(timing.call_timeout(), *call);
                        check(&timing);
                    }
                }
                (Err(error), _) => drop(error.to_string()),
            }
        }
    } else if let Ok(text) = str::from_utf8(bytes) {
        match text.parse::<LeaseTiming>() {
            Ok(timing) => check(&timing),
            Err(error) => drop(error.to_string()),
        }
    }
}

fn duration(bytes: &[u8]) -> Duration {
    let (seconds, nanos) = bytes.split_at(8);
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    Duration::from_secs(number(seconds)).saturating_add(Duration::from_nanos(number(nanos)))
}

/// The rules that `LeaseTiming::new` documents.
fn check(timing: &LeaseTiming) {
    let (lease, renew, retry) = (timing.lease_duration(), timing.renew_deadline(), timing.retry_period());
    let call = timing.call_timeout();
    let pause = Duration::from_millis(500).min(retry / 4);
    assert!(lease > renew && renew.as_secs_f64() > retry.as_secs_f64() * 1.2, "{timing:?}");
    assert!(lease.subsec_nanos() == 0 && i32::try_from(lease.as_secs()).is_ok(), "{timing:?}");
    assert!(retry >= Duration::from_millis(10) && call >= Duration::from_millis(20), "{timing:?}");
    // Rule S9: a failed renewal and three more attempts, each behind a pause.
    assert!(retry + call * 4 + pause * 3 <= renew, "{timing:?}");
    assert_eq!(timing.safety_margin() + renew, lease);
    assert!(timing.tolerated_outage() + retry + pause + call * 2 == renew, "{timing:?}");
    assert_eq!(timing.to_string().parse().as_ref(), Ok(timing), "{timing}");
}
