//! S13: the time of a suspend counts.

use crate::support::{Probe, TERM, assert_lost, lead, stage, write};
use kube_leader_gate::{
    WriteGateLayer,
    leadership::{BootClock, Clock, Loss},
};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tower::{Layer, Service};

/// `/proc/uptime` counts a suspend too (`proc(5)`), in hundredths of a second.
#[cfg(target_os = "linux")]
#[test]
fn s13_machine_clock_agrees_with_uptime() {
    let uptime = || {
        let text = std::fs::read_to_string("/proc/uptime").expect("/proc is there on Linux");
        let seconds: f64 = text.split(' ').next().unwrap().parse().expect("seconds");
        Duration::from_secs_f64(seconds)
    };
    let before = uptime();
    let now = Duration::from_nanos(BootClock.now().as_nanos());
    let after = uptime();
    let tick = Duration::from_millis(10);
    assert!(before <= now + tick && now <= after + tick, "{before:?} {now:?} {after:?}");
}

/// A suspend: the clock jumps, and no timer has run.
#[test]
fn s13_suspend_past_deadline_closes_gate_without_timer() {
    let (grantor, leadership, clock) = stage();
    let grant = lead(&grantor);
    let admitted = leadership.admit().expect("leading");
    clock.advance(TERM * 100);
    assert!(leadership.admit().is_none());
    assert!(!admitted.is_valid());
    assert!(
        grant.extend(leadership.now().saturating_add(TERM)).is_err(),
        "a renewal from before the suspend"
    );
}

/// Timers stand still during a suspend. A waiting task looks at the real clock soon after it.
#[tokio::test(start_paused = true)]
async fn s13_resume_cuts_off_hanging_write_within_a_second() {
    let (grantor, leadership, clock) = stage();
    let watching = tokio::spawn(grantor.watch_deadline());
    let mut service = WriteGateLayer::new(leadership.clone()).layer(Probe::default());
    let _grant = lead(&grantor);
    let hanging = tokio::spawn(service.call(write()));
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(!hanging.is_finished());

    clock.advance(TERM);
    let resumed = Instant::now();
    let lost = timeout(TERM * 2, hanging).await.expect("woken").unwrap().unwrap_err();
    assert_lost(&lost, Loss::Expired);
    assert!(resumed.elapsed() <= Duration::from_millis(1005), "{:?}", resumed.elapsed());
    watching.abort();
}
