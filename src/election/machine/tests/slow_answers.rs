//! An API server whose answers take long: the next calls wait longer (rule S9).

use super::examples::{Answer, Stage, error, seconds};
use crate::{
    election::{
        hooks::LeaseCall::{Read, Renew},
        lease_watch::WatchNews,
        machine::{Call, Order},
    },
    leadership::Moment,
    lease::{ErrLockKind, LeaseTiming},
};
use std::time::Duration;

/// The default times: 2.5 s for a call, up to 10 s if the server is slow.
fn stage() -> Stage {
    Stage::timed(LeaseTiming::default())
}

/// The server carries the call out, and answers after so long. The candidate may have given up by then.
fn late(stage: &mut Stage, call: &Call, takes: Duration) -> Answer {
    let answer = stage.carry_out(call);
    stage.now = stage.now.saturating_add(takes.min(call.patience));
    if takes <= call.patience { answer } else { Err(error(ErrLockKind::Timeout)) }
}

#[test]
fn s9_candidate_waits_for_slow_answers_by_itself() {
    for takes in [3, 6, 9].map(Duration::from_secs) {
        let (mut stage, mut timeouts) = (stage(), 0);
        stage.play(seconds(300), |stage, call| {
            let answer = late(stage, call, takes);
            timeouts += u32::from(answer.is_err());
            answer
        });
        assert!(stage.is_open(), "{takes:?}");
        let learning = timeouts;
        stage.play(seconds(3_600), |stage, call| {
            assert!(stage.is_open(), "{takes:?}");
            let answer = late(stage, call, takes);
            timeouts += u32::from(answer.is_err());
            answer
        });
        assert!(learning <= 6 && timeouts == learning, "{takes:?}: {learning}, {timeouts}");
    }
}

#[test]
fn fast_answers_end_the_patience() {
    let mut stage = stage();
    stage.play(seconds(300), |stage, call| late(stage, call, Duration::from_secs(6)));
    let mut patience = vec![];
    stage.play(seconds(100), |stage, call| {
        patience.push(call.patience);
        late(stage, call, Duration::from_millis(5))
    });
    assert!(patience.first() == Some(&Duration::from_secs(10)), "{patience:?}");
    assert!(patience.last() == Some(&Duration::from_millis(2_500)), "{patience:?}");
}

/// However long its calls may take: three more attempts fit, if each hangs to its end.
#[test]
fn s9_three_attempts_fit_after_slow_answers_too() {
    let mut stage = stage();
    stage.play(seconds(300), |stage, call| late(stage, call, Duration::from_secs(9)));
    let (deadline, mut attempts) = (stage.deadline(), 0);
    stage.play(seconds(107), |stage, call| {
        attempts += u32::from(call.what == Renew && stage.now < deadline);
        late(stage, call, Duration::MAX)
    });
    assert!(attempts >= 4, "{attempts}");
}

/// A call of a holder may take a quarter of what is left, after a pause and a call timeout.
#[test]
fn s9_call_of_a_holder_leaves_three_quarters_of_its_time() {
    let mut stage = stage();
    stage.play(seconds(300), |stage, call| late(stage, call, Duration::from_secs(9)));
    let (deadline, second) = (stage.deadline(), Duration::from_secs(1));
    let mut long = 0;
    stage.play(seconds(107), |stage, call| {
        let left = deadline.saturating_since(stage.now).saturating_sub(3 * second);
        if call.patience > second * 5 / 2 && stage.now < deadline {
            assert!(call.patience * 4 <= left, "{:?} of {left:?}", call.patience);
            long += u32::from(call.patience < 10 * second);
        }
        late(stage, call, Duration::MAX)
    });
    assert!(long > 0, "none was limited by the deadline");
}

/// An outage of the tolerated length ends no term, also if the holder has learned to wait.
#[test]
fn s9_patience_does_not_shorten_the_tolerated_outage() {
    let second = Duration::from_secs(1);
    let timings = [
        LeaseTiming::default(),
        LeaseTiming::fast(),
        LeaseTiming::new(second * 60, second * 40, second * 10).unwrap(),
        LeaseTiming::default().with_call_timeout(second / 10).unwrap(),
        LeaseTiming::default().with_call_timeout(second * 10).unwrap(),
    ];
    for timing in timings {
        // From the last renewal before the outage to its end.
        let from = timing.retry_period();
        for learned in [Duration::ZERO, timing.call_timeout(), timing.longest_patience().mul_f64(0.85)] {
            let mut stage = Stage::timed(timing);
            stage.play(seconds(600), |stage, call| late(stage, call, learned));
            assert!(stage.is_open(), "{timing} {learned:?}");
            let claimed = stage.deadline().as_nanos() - nanos(timing.renew_deadline());
            let begins = Moment::from_nanos(claimed).saturating_add(from / 2).max(stage.now);
            // The last answer may come a moment before the deadline.
            let outage = timing.tolerated_outage().saturating_sub(Duration::from_millis(1));
            let ends = Moment::from_nanos(claimed).saturating_add(from + outage);
            stage.play(u64::try_from(timing.lease_duration().as_millis()).unwrap(), |stage, call| {
                assert!(stage.is_open(), "{timing} {learned:?}");
                let is_away = begins <= stage.now && stage.now < ends;
                if is_away {
                    stage.now = stage.now.saturating_add(call.patience);
                    return Err(error(ErrLockKind::Timeout));
                }
                late(stage, call, timing.call_timeout())
            });
            assert!(stage.is_open(), "{timing} {learned:?}");
        }
    }
}

/// As with a slow disk of etcd. A fast read or a conflict does not say that writes are fast.
#[test]
fn s9_slow_writes_beside_fast_reads_keep_the_term() {
    let fast = Duration::from_millis(5);
    for takes in [3, 4, 9].map(Duration::from_secs) {
        let mut stage = stage();
        let play = |stage: &mut Stage, call: &Call| {
            let answer = stage.carry_out(call);
            let is_fast = call.what == Read || answer.is_err();
            let takes = if is_fast { fast } else { takes };
            stage.now = stage.now.saturating_add(takes.min(call.patience));
            if takes <= call.patience { answer } else { Err(error(ErrLockKind::Timeout)) }
        };
        stage.play(seconds(300), play);
        for _ in 0..60 {
            // Each new watch asks for a read.
            stage.machine.watched(WatchNews::Up, stage.now);
            stage.play(seconds(30), |stage, call| {
                assert!(stage.is_open(), "{takes:?}");
                play(stage, call)
            });
        }
        assert!(stage.is_open(), "{takes:?}");
    }
}

/// A stop has its own time limit.
#[test]
fn s4_calls_of_a_stop_wait_no_longer() {
    let mut stage = stage();
    stage.play(seconds(300), |stage, call| late(stage, call, Duration::from_secs(9)));
    stage.order(Order::Stop);
    let mut patience = vec![];
    stage.play(seconds(30), |stage, call| {
        patience.push(call.patience);
        stage.carry_out(call)
    });
    assert_eq!(patience, [Duration::from_millis(2_500)]);
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap()
}
