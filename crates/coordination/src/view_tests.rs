//! Tests of what the election is shown, state by state.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn view() -> View {
    View::new("me", Instant::now())
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

/// Other fields, or other metadata.
fn with(record: LeaseRecord, change: impl FnOnce(&mut Value)) -> LeaseRecord {
    let mut object = record.into_json();
    change(&mut object);
    LeaseRecord::from_json(object).unwrap()
}

/// Takes in `news`, and returns what is shown of it.
fn tell(view: &mut View, news: &LeaseRecord) -> LeaseRecord {
    view.take_in(news, Instant::now());
    view.shown(news)
}

/// The holder, the duration, the renewal, the count and the version of what is shown.
fn said(shown: &LeaseRecord) -> (Option<&str>, Value, Value, u64, &str) {
    let [duration, renewed] = ["leaseDurationSeconds", "renewTime"].map(|field| spec(shown)[field].clone());
    (shown.holder(), duration, renewed, shown.transitions(), shown.resource_version())
}

#[test]
fn lease_of_a_real_holder_is_shown_as_it_is() {
    let mut view = view();
    for real in [held(1, "x"), released(2), held(3, "me"), record(4, &json!({}))] {
        assert_eq!(tell(&mut view, &real), real);
    }
}

/// The named candidate has claimed nothing yet.
#[test]
fn named_lease_is_shown_as_the_last_holder_has_left_it() {
    for holder in ["me", "other"] {
        let mut view = view();
        tell(&mut view, &held(1, "x"));
        let shown = tell(&mut view, &named(2, holder, None));
        assert_eq!(said(&shown), (Some("x"), json!(15), json!("at 1"), 3, "2"), "{holder}");
        let shown = tell(&mut view, &named(3, "third", None));
        assert_eq!(said(&shown), (Some("x"), json!(15), json!("at 1"), 3, "3"), "{holder}");
        tell(&mut view, &released(4));
        let shown = tell(&mut view, &named(5, holder, None));
        assert_eq!(said(&shown), (None, json!(1), json!("released"), 3, "5"), "{holder}");
        let shown = shown.into_json();
        assert_eq!(
            (&shown["metadata"]["labels"]["a"], &shown["spec"]["strategy"]),
            (&json!("b"), &json!("OldestEmulationVersion"))
        );
    }
}

/// Another one would lead beside it if its own claim were shown on.
#[test]
fn holder_whose_lease_is_named_has_lost_it() {
    for holder in ["me", "other"] {
        let mut view = view();
        tell(&mut view, &held(1, "me"));
        let shown = tell(&mut view, &named(2, holder, None));
        assert_eq!(
            said(&shown),
            (None, json!(5), Value::Null, 3, "2"),
            "as if no candidate had claimed it: {holder}"
        );
    }
}

/// It is held for as long as this candidate would hold it.
#[test]
fn lease_whose_last_holder_was_not_seen_has_an_unknown_one() {
    let unknown = (None, Value::Null, json!("named"), 3, "2");
    let mut first = view();
    assert_eq!(said(&tell(&mut first, &named(2, "me", None))), unknown, "nothing was seen");
    let again = with(named(3, "me", None), |it| it["spec"]["renewTime"] = "named again".into());
    assert_eq!(
        said(&tell(&mut first, &again)),
        (None, Value::Null, json!("named"), 3, "3"),
        "its time goes on"
    );
    let another_object = with(held(1, "x"), |it| it["metadata"]["uid"] = "another".into());
    let another_term = with(held(1, "x"), |it| it["spec"]["leaseTransitions"] = 2.into());
    for before in [another_object, another_term] {
        let mut view = view();
        tell(&mut view, &before);
        assert_eq!(said(&tell(&mut view, &named(2, "me", None))), unknown);
    }
}

#[test]
fn lease_that_the_coordinator_makes_is_free_to_whom_it_names() {
    let (mut view, now) = (view(), Instant::now());
    view.read(None, None, now);
    let shown = tell(&mut view, &named(1, "me", None));
    assert_eq!(said(&shown), (None, json!(5), Value::Null, 3, "1"), "no candidate has claimed it");
    tell(&mut view, &held(2, "x"));
    view.deleted(&held(3, "x"), now);
    assert_eq!(view.status(), LockStatus { seen: true, vacant_from: Some(now) });
    let anew = with(named(4, "me", None), |it| it["metadata"]["uid"] = "another".into());
    assert_eq!(said(&tell(&mut view, &anew)), (None, json!(5), Value::Null, 3, "4"));
}

#[test]
fn old_news_changes_nothing() {
    let (mut view, now) = (view(), Instant::now());
    tell(&mut view, &held(10, "x"));
    tell(&mut view, &released(9));
    view.read(Some(&released(9)), Some("8"), now);
    view.deleted(&released(9), now);
    assert_eq!(said(&tell(&mut view, &named(11, "me", None))).0, Some("x"));
    // There was no news since the read was sent: a backup was restored.
    view.read(Some(&released(9)), Some("11"), now);
    assert_eq!(said(&tell(&mut view, &named(10, "me", None))).0, None);
}

#[test]
fn claim_is_written_over_the_real_lease_that_names_it() {
    let mut view = view();
    let refused = |view: &View, seen: &LeaseRecord, holder: &str| view.over(seen, holder).unwrap_err().kind();
    assert_eq!(refused(&view, &released(1), "me"), ErrLockKind::Conflict, "nothing is known");
    let free = tell(&mut view, &released(1));
    assert_eq!(refused(&view, &free, "me"), ErrLockKind::Conflict);
    let real = named(2, "me", None);
    let shown = tell(&mut view, &real);
    assert!(view.is_named());
    assert_eq!((shown.holder(), view.over(&shown, "me").unwrap()), (None, real.clone()));
    assert_eq!(view.over(&shown, "").unwrap(), real, "a release");
    assert_eq!(refused(&view, &free, "me"), ErrLockKind::Conflict, "it has seen an older version");
    assert_eq!(refused(&view, &shown, "other"), ErrLockKind::Refused, "a question, or an edit");
    let other = tell(&mut view, &named(3, "other", None));
    assert!(!view.is_named());
    for seen in [shown, other] {
        assert_eq!(refused(&view, &seen, "me"), ErrLockKind::Conflict, "another one is named meanwhile");
    }
}

#[test]
fn preferred_candidate_is_shown_as_one_that_asks() {
    let mut view = view();
    let preferring = |record: LeaseRecord, preferred: &str| {
        with(record, |it| it["spec"]["preferredHolder"] = preferred.into())
    };
    for (lease, preferred, asks) in [
        (held(1, "me"), None, None),
        (preferring(held(2, "me"), "me"), None, None),
        (preferring(held(3, "other"), "third"), None, None),
        (named(4, "me", Some("other")), Some("other"), None),
        (preferring(held(5, "me"), "other"), Some("other"), Some("other")),
    ] {
        let shown = tell(&mut view, &lease);
        assert_eq!(view.preferred().as_deref(), preferred);
        assert_eq!(shown.into_json()["metadata"]["annotations"][ASKED].as_str(), asks, "{lease:?}");
    }
}

#[test]
fn vacancy_is_counted_from_the_holders_end() {
    let (mut view, now) = (view(), Instant::now());
    let vacant_from = |view: &mut View, news: &LeaseRecord, at: Instant| {
        view.take_in(news, at);
        view.status().vacant_from
    };
    assert_eq!(view.status(), LockStatus { seen: false, vacant_from: None });
    assert_eq!(vacant_from(&mut view, &held(1, "x"), now), Some(now + 15 * SECOND));
    let edited = with(held(2, "x"), |it| it["spec"] = spec(&held(1, "x")));
    assert_eq!(vacant_from(&mut view, &edited, now + SECOND), Some(now + 15 * SECOND), "no renewal");
    assert_eq!(vacant_from(&mut view, &released(3), now + SECOND), Some(now + SECOND));
    assert_eq!(vacant_from(&mut view, &named(4, "other", None), now), Some(now + 5 * SECOND));
    assert_eq!(vacant_from(&mut view, &named(5, "me", None), now), None);
    let endless = with(held(6, "x"), |it| it["spec"]["leaseDurationSeconds"] = u64::MAX.into());
    assert_eq!(vacant_from(&mut view, &endless, now), None);
}
