//! Tests of what a candidate does about its `LeaseCandidate` object.

use super::*;
use crate::settings::Versions;
use jiff::SignedDuration;
use kube_leader_gate::{Identity, lease::LeaseName};

const WALL: &str = "2026-01-01T12:00:00.000000Z";

fn at(seconds: u64) -> Moment {
    Moment::from_nanos(1_000_000_000_000).saturating_add(Duration::from_secs(seconds))
}

fn wall() -> Timestamp {
    WALL.parse().unwrap()
}

fn card() -> CandidateSpec {
    CandidateSpec {
        identity: Identity::new("me").unwrap(),
        lease: LeaseName::new("default", "operator").unwrap(),
        versions: Versions::new("1.5.0").unwrap().emulating("1.4.0").unwrap(),
    }
}

/// The object as the server has it, after `edit`.
fn stored(version: u64, edit: impl FnOnce(&mut Value)) -> CandidateRecord {
    let mut object = card().created(wall());
    object["metadata"]["uid"] = "u".into();
    object["metadata"]["resourceVersion"] = version.to_string().into();
    edit(&mut object);
    CandidateRecord::from_json(object).unwrap()
}

fn registered() -> Register {
    let mut register = Register::new(card());
    register.watches(true);
    register.read(None, true, at(0));
    register.written(stored(1, |_| {}), at(0));
    register
}

#[test]
fn candidate_that_stands_is_read_and_created() {
    let mut register = Register::new(card());
    assert_eq!(register.next(false, at(0), wall()), Next::Wait(at(30)), "nothing is asked before");
    assert_eq!(register.next(true, at(0), wall()), Next::Read);
    register.read(None, true, at(0));
    let Next::Create(object) = register.next(true, at(0), wall()) else { panic!() };
    assert_eq!(
        object["spec"],
        json!({ "leaseName": "operator", "binaryVersion": "1.5.0", "emulationVersion": "1.4.0",
                "strategy": "OldestEmulationVersion", "renewTime": WALL })
    );
    assert_eq!(
        (&object["metadata"]["name"], &object["metadata"]["namespace"]),
        (&json!("me"), &json!("default"))
    );
    register.written(stored(1, |_| {}), at(0));
    assert_eq!(register.next(true, at(0), wall()), Next::Wait(at(2)), "polled, since there is no watch");
}

/// By the clock of the coordinator, which may be ahead of this one or behind it.
#[test]
fn ping_is_answered_by_the_coordinators_clock() {
    for ahead in [-3600, 1, 3600] {
        let mut register = registered();
        let ping = wall() + SignedDuration::from_secs(ahead);
        let pinged = stored(2, |object| {
            object["spec"]["pingTime"] = ping.to_string().into();
            object["spec"]["renewTime"] = (ping - SignedDuration::from_secs(60)).to_string().into();
            object["metadata"]["labels"] = json!({ "team": "a" });
        });
        register.hear(pinged);
        let Next::Update(answer) = register.next(true, at(1), wall()) else { panic!("{ahead}") };
        let renewed: Timestamp = answer["spec"]["renewTime"].as_str().unwrap().parse().unwrap();
        assert_eq!(renewed.duration_since(ping), SignedDuration::from_micros(1), "{ahead}");
        assert_eq!(answer["metadata"]["labels"]["team"], "a", "foreign fields survive");
        assert_eq!(answer["metadata"]["resourceVersion"], "2");
        register.written(CandidateRecord::from_json(answer).unwrap(), at(1));
        assert!(matches!(register.next(true, at(1), wall()), Next::Wait(_)), "one answer is enough");
    }
}

#[test]
fn object_is_renewed_every_five_minutes() {
    let mut register = registered();
    assert_eq!(register.next(true, at(1), wall()), Next::Wait(at(30)));
    register.read(Some(stored(1, |_| {})), true, at(299));
    assert_eq!(register.next(true, at(299), wall()), Next::Wait(at(300)));
    assert!(matches!(register.next(true, at(300), wall()), Next::Update(_)));
}

#[test]
fn deleted_object_is_created_again() {
    let mut register = registered();
    register.hear_deletion(&stored(2, |_| {}));
    assert!(matches!(register.next(true, at(1), wall()), Next::Create(_)));
    let mut register = registered();
    register.hear(stored(5, |_| {}));
    register.hear_deletion(&stored(4, |_| {}));
    assert!(matches!(register.next(true, at(1), wall()), Next::Wait(_)), "old news");
}

/// A restarted container has the name of the one before it, and perhaps another version.
#[test]
fn versions_of_an_earlier_process_are_replaced() {
    let mut register = registered();
    register.hear(stored(2, |object| object["spec"]["binaryVersion"] = "1.3.0".into()));
    let Next::Update(object) = register.next(true, at(1), wall()) else { panic!() };
    assert_eq!(object["spec"]["binaryVersion"], "1.5.0");
}

#[test]
fn object_of_another_lease_is_left_alone() {
    let mut register = Register::new(card());
    register.read(Some(stored(1, |object| object["spec"]["leaseName"] = "another".into())), true, at(0));
    assert_eq!(register.other_lease(), Some("another"));
    for stands in [true, false] {
        assert_eq!(register.next(stands, at(1), wall()), Next::Wait(at(2)));
    }
    assert!(!register.is_listed());
}

#[test]
fn withdrawn_candidate_is_deleted_by_its_uid() {
    let mut register = registered();
    assert!(register.is_listed());
    assert_eq!(register.next(false, at(1), wall()), Next::Delete(json!({ "preconditions": { "uid": "u" } })));
    register.deleted();
    assert!(!register.is_listed());
    assert_eq!(register.next(false, at(1), wall()), Next::Wait(at(31)));
    assert!(matches!(register.next(true, at(1), wall()), Next::Create(_)), "and offered again");
}

#[test]
fn failed_call_is_followed_by_a_pause_and_a_read() {
    let mut register = registered();
    let (first, longest) = (Duration::from_millis(500), Duration::from_secs(2));
    register.failed(true, first, longest, at(1));
    assert_eq!(register.next(true, at(1), wall()), Next::Read, "at once after a conflict");
    register.failed(false, first, longest, at(1));
    let Next::Wait(until) = register.next(true, at(1), wall()) else { panic!() };
    assert!(until > at(1) && until <= at(2));
    assert_eq!(register.next(true, at(3), wall()), Next::Read);
}

/// An API server without the API answers a read as if the object were missing.
#[test]
fn read_does_not_shorten_the_pause_of_writes() {
    let mut register = Register::new(card());
    let (first, longest) = (Duration::from_millis(500), Duration::from_secs(32));
    register.read(None, true, at(0));
    for _ in 0..10 {
        register.failed(false, first, longest, at(0));
        register.read(None, true, at(0));
    }
    let Next::Wait(until) = register.next(true, at(0), wall()) else { panic!() };
    assert!(until >= at(16) && register.is_failing(), "{until:?}");
    register.read(None, false, at(0));
    assert!(!register.is_failing(), "nothing is to be written");
}

/// Another program undoes each write at once, for example an admission webhook.
#[test]
fn undone_writes_are_repeated_once_a_second() {
    let mut register = registered();
    let undone = |version| stored(version, |object| object["spec"]["strategy"] = "example.com/other".into());
    register.hear(undone(2));
    assert_eq!(register.next(true, at(0), wall()), Next::Wait(at(1)));
    assert!(matches!(register.next(true, at(1), wall()), Next::Update(_)));
    register.written(undone(3), at(1));
    assert_eq!(register.next(true, at(1), wall()), Next::Wait(at(2)));
    register.hear_deletion(&undone(4));
    assert_eq!(register.next(true, at(1), wall()), Next::Wait(at(2)));
    assert!(matches!(register.next(true, at(2), wall()), Next::Create(_)));
}

/// The object must go, so a failed deletion counts until it has gone.
#[test]
fn read_of_an_object_that_must_go_is_no_success() {
    for (stands, failing) in [(true, false), (false, true)] {
        let mut register = registered();
        register.failed(false, Duration::from_millis(500), Duration::from_secs(2), at(1));
        register.read(Some(stored(1, |_| {})), stands, at(2));
        assert_eq!(register.is_failing(), failing, "stands: {stands}");
    }
}

#[test]
fn only_a_watch_that_begins_leaves_doubt_about_an_object() {
    let mut register = registered();
    register.watches(false);
    assert_eq!(register.next(true, at(1), wall()), Next::Wait(at(2)), "polled from now on");
    register.watches(true);
    assert_eq!(register.next(true, at(1), wall()), Next::Read);
    let mut new = Register::new(card());
    new.watches(true);
    assert!(!new.is_listed(), "it has not registered yet");
}

#[test]
fn only_the_first_conflict_is_followed_by_a_read_at_once() {
    let (first, longest) = (Duration::from_millis(500), Duration::from_secs(2));
    for conflict in [false, true] {
        let mut register = registered();
        register.failed(conflict, first, longest, at(1));
        assert_eq!(register.next(true, at(1), wall()) == Next::Read, conflict);
        register.failed(conflict, first, longest, at(1));
        assert!(matches!(register.next(true, at(1), wall()), Next::Wait(_)), "conflict: {conflict}");
    }
}

/// It renewed at the very time of the ping.
#[test]
fn ping_that_is_no_later_than_the_renewal_is_answered() {
    let mut register = registered();
    register.hear(stored(2, |object| object["spec"]["pingTime"] = WALL.into()));
    assert!(matches!(register.next(true, at(1), wall()), Next::Wait(_)));
}

/// Without them, neither a write nor a deletion could say which state of which object it means.
#[test]
fn object_without_uid_or_version_is_no_candidate() {
    let object = json!({ "metadata": { "name": "me", "uid": "u", "resourceVersion": "1" } });
    assert!(CandidateRecord::from_json(object.clone()).is_some());
    for field in ["uid", "resourceVersion"] {
        let mut without = object.clone();
        without["metadata"][field] = "".into();
        assert_eq!(CandidateRecord::from_json(without), None, "{field}");
    }
}
