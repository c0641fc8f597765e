//! What candidates write into the lease for one another.

use jiff::Timestamp;
use kube_leader_gate::{
    Identity, LeaseTiming,
    election::Priority,
    internal::{
        ASKED, Busy, CLAIM, Gate, HOLDER_KEY, Machine, Next, WAITS_FOR, WatchNews, holder_key, is_key,
    },
    leadership::Moment,
    lease::{ErrLock, ErrLockKind, LeaseEvent, LeaseRecord},
};
use serde_json::json;
use std::time::Duration;

/// Lines: the claim, whom its holder waits for, who asks and with which key, the holder's key.
pub(super) const SEEDS: &[&str] = &[
    "0000000000000007 2026-01-02T03:04:05.000006Z u 15s - holder\n\n\n\nstable",
    "0000000000000007 2026-01-02T03:04:05.000006Z u 15s p holder\n{\"other\": 9000, \"\": 1}\nthird\nhigh\nlow",
    "ffffffffffffffff 2026-01-02T03:04:05.000006Z - 18446744073709551615s - me\n{\"me\": 18446744073709551615}\nme\n\nhigh",
    "1 then u 15 holder\n[1]\n \n\n\u{a0}",
];

pub(super) const WORDS: &[&str] = &[
    "\n",
    " ",
    "-",
    "s",
    "0",
    "15s",
    "0000000000000001",
    "18446744073709551615",
    "2026-01-02T03:04:05.000006Z",
    "9999-12-31T23:59:59Z",
    "{",
    "}",
    "\"\"",
    "\"me\":",
    ",",
    "9000",
    "-1",
    "low",
    "mid",
    "high",
    "me",
    "holder",
    "u",
    "p",
    "\\u0000",
    "\u{a0}",
    "é",
];

/// The longest time that a candidate waits for a holder whose lease is gone.
const LONGEST_SANE: Duration = Duration::from_secs(24 * 60 * 60);

/// Lines: the claim, whom its holder waits for, who asks and with which key, the holder's key.
pub(super) fn body(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let mut lines = text.split('\n');
    let mut line = || lines.next().unwrap_or_default();
    let (claim, waits_for, asked, asks_with, key) = (line(), line(), line(), line(), line());
    let asked = if asks_with.is_empty() { asked.to_owned() } else { format!("{asked}\n{asks_with}") };
    let record = |holder: &str, version: u64| {
        let annotations = json!({ CLAIM: claim, WAITS_FOR: waits_for, ASKED: asked, HOLDER_KEY: key });
        let metadata = json!({ "namespace": "default", "name": "operator", "uid": "u",
                               "resourceVersion": version.to_string(), "annotations": annotations });
        let time = "2026-01-02T03:04:05.000006Z";
        let spec = json!({ "holderIdentity": holder, "leaseTransitions": 3, "acquireTime": time, "renewTime": time,
                           "leaseDurationSeconds": 15 });
        LeaseRecord::from_json(json!({ "metadata": metadata, "spec": spec })).expect("a lease")
    };
    let known = holder_key(&record("holder", 1)).map(str::to_owned);
    assert_eq!(known.as_deref(), Some(key).filter(|key| key.is_empty() || is_key(key)));
    for holder in ["holder", "me", ""] {
        candidate_that_sees(&[record(holder, 1), record("third", 2)]);
    }
}

/// It opens no gate without an answered claim, waits for no time that makes no sense, and makes few calls.
fn candidate_that_sees(states: &[LeaseRecord]) {
    let priority = Priority::new("mid", |holder| holder == "low").ok();
    let identity = Identity::new("me").expect("a name");
    let mut machine = Machine::new(identity, Some("p".into()), 1, priority, LeaseTiming::fast());
    let begin = Moment::from_nanos(1_000_000_000_000);
    let mut now = begin;
    machine.handle_watch(WatchNews::Up, now);
    let mut calls = 0;
    for state in states {
        machine.handle_watch(WatchNews::Event(LeaseEvent::Seen(state.clone())), now);
        if let Some((_, until)) = machine.waits_for(now) {
            assert!(until.saturating_since(now) <= LONGEST_SANE);
        }
        for _ in 0..32 {
            assert!(!matches!(machine.gate(now), Gate::Open { .. } | Gate::Closing { .. }));
            now = match machine.poll(Busy::default(), Timestamp::UNIX_EPOCH, now) {
                Next::Call(call) => {
                    calls += 1;
                    if let Some(update) = &call.update {
                        let after = call.seen.as_ref().map(|seen| seen.with(update));
                        assert!(after.is_none_or(|after| after.holds(update).is_ok()), "{update:?}");
                    }
                    let _ = machine
                        .handle_answer(Err(ErrLock::new(ErrLockKind::Timeout, "as the test has it")), now);
                    now
                }
                Next::Wait(until) => {
                    assert!(until > now, "it waits for the past");
                    until
                }
                Next::Done(how) => panic!("it was not told to stop: {how:?}"),
            };
        }
    }
    let seconds = now.saturating_since(begin).as_secs();
    assert!(calls <= 16 + 4 * seconds, "{calls} calls in {seconds} s");
}
