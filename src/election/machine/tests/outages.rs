//! An API server that does not answer for a while (rule S9).

use super::examples::{Stage, error, seconds};
use crate::{
    leadership::Moment,
    lease::{ErrLockKind, LeaseTiming},
};
use std::time::Duration;

/// The worst case: the outage begins just before a renewal, each call hangs, and the first answer after it takes a whole call
/// timeout.
#[test]
fn s9_outage_of_the_tolerated_length_ends_no_term() {
    let second = Duration::from_secs(1);
    let timings = [
        LeaseTiming::default(),
        LeaseTiming::fast(),
        LeaseTiming::new(second * 60, second * 40, second * 10).unwrap(),
        LeaseTiming::default().with_call_timeout(second / 10).unwrap(),
        LeaseTiming::default().with_call_timeout(second * 10).unwrap(),
    ];
    for timing in timings {
        let mut stage = Stage::timed(timing);
        stage.play(seconds(600), Stage::carry_out);
        assert!(stage.is_open(), "{timing}");
        let claimed = Moment::from_nanos(stage.deadline().as_nanos() - nanos(timing.renew_deadline()));
        let begins = claimed.saturating_add(timing.retry_period() / 2).max(stage.now);
        // The last answer may come a moment before the deadline.
        let outage = timing.tolerated_outage().saturating_sub(Duration::from_millis(1));
        let ends = claimed.saturating_add(timing.retry_period() + outage);
        let mut hung = 0;
        stage.play(u64::try_from(timing.lease_duration().as_millis()).unwrap(), |stage, call| {
            assert!(stage.is_open(), "{timing}");
            let is_away = begins <= stage.now && stage.now < ends;
            let answer = if is_away { Err(error(ErrLockKind::Timeout)) } else { stage.carry_out(call) };
            hung += u32::from(is_away);
            stage.now = stage.now.saturating_add(timing.call_timeout());
            answer
        });
        assert!(stage.is_open() && hung >= 2, "{timing}: {hung} calls hung");
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap()
}
