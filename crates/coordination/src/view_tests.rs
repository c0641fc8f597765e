//! Tests of what the election is shown, state by state.

use super::*;
use crate::{spec::COORDINATOR, status::LockStatus};
use serde_json::{Value, json};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn view() -> View {
    View::new("me", &LeaseName::new("default", "operator").unwrap(), &LeaseTiming::fast())
}

fn record(version: u64, spec: &Value) -> LeaseRecord {
    let metadata = json!({ "namespace": "default", "name": "operator", "uid": "u",
                           "resourceVersion": version.to_string(), "labels": { "a": "b" } });
    LeaseRecord::from_json(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

fn held(version: u64, holder: &str) -> LeaseRecord {
    record(
        version,
        &json!({ "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 3,
                 "acquireTime": "then", "renewTime": format!("at {version}") }),
    )
}

fn released(version: u64) -> LeaseRecord {
    record(
        version,
        &json!({ "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 3, "acquireTime": "released",
                 "renewTime": "released" }),
    )
}

fn named(version: u64, holder: &str, preferred: Option<&str>) -> LeaseRecord {
    record(
        version,
        &json!({ "holderIdentity": holder, "leaseDurationSeconds": 5, "leaseTransitions": 3, "renewTime": "named",
                 "preferredHolder": preferred, "strategy": "OldestEmulationVersion" }),
    )
}

/// The holders of all that is shown now, with the version. A deletion has no version.
fn shown(view: &mut View, now: Instant) -> Vec<String> {
    let mut shown = Vec::new();
    while let Some(show) = view.step(now) {
        assert!(shown.len() < 4, "it ends: {shown:?}");
        shown.push(match show {
            Show::Seen(it) => format!("{}@{}", it.holder().unwrap_or("-"), it.resource_version()),
            Show::Gone(_) => "gone".to_owned(),
        });
    }
    shown
}

/// Takes in `news` at `now`, and returns what is shown of it.
fn tell(view: &mut View, news: LeaseRecord, now: Instant) -> Vec<String> {
    assert!(view.seen.take_in(news, now));
    shown(view, now)
}

#[test]
fn release_is_shown_before_the_vacancy() {
    let (mut view, now) = (view(), Instant::now());
    assert_eq!(tell(&mut view, held(1, "x"), now), ["x@1"]);
    assert_eq!(tell(&mut view, released(2), now), ["-@2", "(coordinator)@2"]);
    assert_eq!(view.seen.sight(), LockStatus { seen: true, vacant_from: Some(now) });
}

#[test]
fn coordinator_releases_before_a_holder_is_shown() {
    let (mut view, now) = (view(), Instant::now());
    tell(&mut view, released(1), now);
    assert_eq!(tell(&mut view, held(2, "x"), now), ["-@1", "x@2"]);
}

#[test]
fn named_candidate_sees_a_free_lease_that_no_holder_has_released() {
    let (mut view, now) = (view(), Instant::now());
    tell(&mut view, released(1), now);
    assert!(view.seen.take_in(named(2, "me", None), now));
    let Some(Show::Seen(freed)) = view.step(now) else { panic!() };
    let Some(Show::Seen(free)) = view.step(now) else { panic!() };
    assert!(Spec::of(&freed).released && Spec::of(&free).released);
    assert_eq!(Spec::of(&free).acquired, Spec::of(&freed).acquired, "the word of no holder");
    assert_ne!(free.transitions(), freed.transitions());
    assert_eq!((free.resource_version(), free.transitions()), ("2", 3));
    assert_eq!(view.step(now), None);
}

#[test]
fn former_holder_is_shown_until_its_time() {
    let (mut view, begun) = (view(), Instant::now());
    tell(&mut view, held(1, "x"), begun);
    let named_at = begun + 4 * SECOND;
    assert_eq!(tell(&mut view, named(2, "me", None), named_at), [""; 0]);
    assert_eq!(view.answer(named_at).unwrap(), held(1, "x"));
    assert_eq!(view.seen.changes_at(named_at), Some(named_at + 5 * SECOND), "the named time");
    let over = begun + 15 * SECOND;
    assert_eq!(view.seen.changes_at(begun + 10 * SECOND), Some(over));
    assert_eq!(shown(&mut view, over - SECOND / 1000), [""; 0]);
    assert_eq!(shown(&mut view, over), ["(coordinator)@2", "-@2", "-@2"]);
}

/// It has not seen whose place the other one takes.
#[test]
fn candidate_that_first_sees_another_one_named_waits_for_a_whole_lease() {
    let (mut view, begun) = (view(), Instant::now());
    tell(&mut view, named(1, "x", None), begun);
    tell(&mut view, named(2, "me", None), begun + SECOND);
    assert_eq!(shown(&mut view, begun + 5 * SECOND), ["(coordinator)@2"]);
    assert_eq!(shown(&mut view, begun + 15 * SECOND - SECOND / 1000), [""; 0]);
    assert_eq!(shown(&mut view, begun + 15 * SECOND), ["-@2", "-@2"]);
}

#[test]
fn expired_holder_is_shown_as_the_coordinator() {
    let (mut view, begun) = (view(), Instant::now());
    tell(&mut view, held(1, "x"), begun);
    let over = begun + 15 * SECOND;
    assert_eq!(shown(&mut view, over), ["(coordinator)@1"]);
    assert_eq!(view.seen.sight().vacant_from, Some(over));
    assert_eq!(tell(&mut view, held(2, "x"), over), ["-@1", "x@2"]);
}

/// Each read holds it for some time more.
#[test]
fn vacant_lease_is_held_again_with_each_read() {
    let (mut view, now) = (view(), Instant::now());
    assert_eq!(tell(&mut view, released(1), now), ["-@1", "(coordinator)@1"]);
    let (one, two) = (view.answer(now).unwrap(), view.answer(now).unwrap());
    assert_eq!((one.holder(), two.holder()), (Some(COORDINATOR), Some(COORDINATOR)));
    assert_ne!(one, two);
    assert_eq!(tell(&mut view, released(2), now), ["(coordinator)@2"], "a newer version of the same");
}

/// If the preferred one does not come, this one takes the lease to release it: only a free lease is named anew.
#[test]
fn named_candidate_leaves_the_lease_to_a_preferred_one() {
    let (mut view, begun) = (view(), Instant::now());
    tell(&mut view, released(1), begun);
    assert_eq!(tell(&mut view, named(2, "me", Some("other")), begun), ["(coordinator)@2"]);
    assert_eq!(shown(&mut view, begun + 5 * SECOND), ["-@2", "-@2"]);
}

/// Another process with this identity was faster.
#[test]
fn named_twin_sees_who_holds_the_lease() {
    let (mut view, now) = (view(), Instant::now());
    tell(&mut view, released(1), now);
    tell(&mut view, named(2, "me", None), now);
    assert_eq!(tell(&mut view, held(3, "me"), now), ["me@3"]);
}

#[test]
fn deleted_lease_is_shown_as_gone_and_then_as_vacant() {
    let (mut view, now) = (view(), Instant::now());
    tell(&mut view, held(1, "me"), now);
    view.seen.deleted(held(2, "me"), now);
    assert_eq!(shown(&mut view, now), ["gone", "(coordinator)@none"]);
    let mut anew = named(3, "me", None).into_json();
    anew["metadata"]["uid"] = "another".into();
    assert_eq!(tell(&mut view, LeaseRecord::from_json(anew).unwrap(), now), ["-@none", "-@3"]);
}

#[test]
fn old_news_changes_nothing() {
    let (mut view, now) = (view(), Instant::now());
    tell(&mut view, held(10, "x"), now);
    assert!(!view.seen.take_in(released(9), now));
    view.seen.read(Some(released(9)), Some("8"), now);
    assert_eq!(shown(&mut view, now), [""; 0]);
    // There was no news since the read was sent: a backup was restored.
    view.seen.read(Some(released(9)), Some("10"), now);
    assert_eq!(shown(&mut view, now), ["-@9", "(coordinator)@9"]);
}

#[test]
fn claim_is_written_over_the_real_lease_that_names_it() {
    let (mut view, now) = (view(), Instant::now());
    tell(&mut view, released(1), now);
    let vacant = view.answer(now).unwrap();
    let over = |view: &View, seen: &LeaseRecord| view.over(seen, "me", &mut BTreeMap::new());
    let refused = |view: &View, seen: &LeaseRecord| over(view, seen).unwrap_err().kind();
    assert_eq!(refused(&view, &vacant), ErrLockKind::Refused);
    assert_eq!(refused(&view, &released(0)), ErrLockKind::Conflict);
    let real = named(2, "me", None);
    assert!(view.seen.take_in(real.clone(), now));
    view.step(now);
    let freed = view.shown.record().unwrap().clone();
    assert_eq!(refused(&view, &freed), ErrLockKind::Conflict, "it is shown as free for a moment");
    view.step(now);
    let free = view.answer(now).unwrap();
    assert_eq!((free.holder(), over(&view, &free).unwrap()), (None, real));
    tell(&mut view, named(3, "other", None), now);
    assert_eq!(refused(&view, &free), ErrLockKind::Conflict, "another one is named meanwhile");
}

#[test]
fn only_the_acquired_lease_is_given_to_a_preferred_one() {
    let (mut view, now) = (view(), Instant::now());
    let preferring = |record: LeaseRecord, preferred: &str| {
        let mut lease = record.into_json();
        lease["spec"]["preferredHolder"] = preferred.into();
        LeaseRecord::from_json(lease).unwrap()
    };
    for (lease, preferred) in [
        (held(1, "me"), None),
        (preferring(held(2, "me"), "me"), None),
        (preferring(held(3, "other"), "third"), None),
        (preferring(named(4, "me", None), "other"), None),
        (preferring(held(5, "me"), "other"), Some("other")),
    ] {
        tell(&mut view, lease, now);
        assert_eq!(view.seen.preferred(), preferred);
    }
}
