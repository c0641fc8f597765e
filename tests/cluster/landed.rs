//! Writes of leases that the audit log calls failed, although they took effect.
//!
//! If the sender of a write goes away, a real server gives up the answer and logs a timeout (504). The write itself may be
//! on its way to etcd. What the lease is afterwards, or the version that the next write has seen, shows that it landed.

use kube_leader_gate::testing::WriteRecord;
use serde_json::{Value, json};
use test_support::apiserver::AuditEvent;

/// Corrects the events of such writes, and says whether the log has what made each of these leases what it is.
pub fn settle(events: &mut [AuditEvent], leases: &[Value]) -> bool {
    let mut seen: Vec<_> = (events.iter().enumerate())
        .filter_map(|(place, it)| Some((version(&it.request_object)?, name(it)?.to_owned(), place)))
        .collect();
    seen.sort();
    for (version, name, place) in seen {
        // If no event has it, the server was killed before it could log.
        let _ = is_logged(events, &name, version, &Shown::ToWrite(place));
    }
    leases.iter().all(|lease| {
        let name = lease["metadata"]["name"].as_str().expect("a name");
        is_logged(events, name, version(lease).expect("a version"), &Shown::Now(lease))
    })
}

/// What shows that a version was stored.
enum Shown<'a> {
    /// The lease is this now.
    Now(&'a Value),
    /// The event at this place has seen the version.
    ToWrite(usize),
}

/// Whether an event has stored this version. If none has, the write that must have landed is taken for it.
fn is_logged(events: &mut [AuditEvent], lease: &str, stored: u64, shown: &Shown<'_>) -> bool {
    let of_lease = |it: &AuditEvent| name(it) == Some(lease);
    let before = events.iter().filter(|it| of_lease(it)).map(|it| &it.response_object);
    let before = before.filter_map(|it| Some((version(it)?, it))).filter(|(version, _)| *version <= stored);
    let before = before.max_by_key(|(version, _)| *version);
    if before.is_some_and(|(version, _)| version == stored) {
        return true;
    }
    let later = match shown {
        Shown::Now(lease) => lease,
        Shown::ToWrite(place) => &events[*place].response_object,
    };
    let uid = [later, before.map_or(later, |it| it.1)].map(|it| it["metadata"]["uid"].clone());
    let uid = uid.into_iter().find(Value::is_string).unwrap_or_default();
    let before = before.map(|(version, _)| version);
    let failed = events.iter().enumerate().filter(|(_, it)| {
        of_lease(it) && it.response_status.code >= 500 && it.request_object["spec"].is_object()
    });
    let landed = match shown {
        Shown::Now(lease) => {
            failed.filter(|(_, it)| it.request_object["spec"] == lease["spec"]).map(|it| it.0).next_back()
        }
        // Of several, the one whose term the next write continues.
        Shown::ToWrite(next) => failed
            .filter(|(_, it)| version(&it.request_object) == before)
            .max_by_key(|(place, it)| (term(it) == term(&events[*next]), *place))
            .map(|it| it.0),
    };
    let Some(landed) = landed.map(|place| &mut events[place]) else { return false };
    landed.response_status.code = 200;
    landed.response_object = landed.request_object.clone();
    landed.response_object["kind"] = "Lease".into();
    landed.response_object["metadata"]["resourceVersion"] = stored.to_string().into();
    landed.response_object["metadata"]["uid"] = uid;
    true
}

/// The term that a write is about: its holder and its number.
fn term(event: &AuditEvent) -> [&Value; 2] {
    ["holderIdentity", "leaseTransitions"].map(|field| &event.request_object["spec"][field])
}

/// The lease that a write is for, if it is one for a lease.
fn name(event: &AuditEvent) -> Option<&str> {
    let is_write = matches!(&*event.verb, "create" | "update" | "patch");
    let named = event.object_ref.name.as_deref().or(event.request_object["metadata"]["name"].as_str());
    named.filter(|_| is_write && event.object_ref.resource == "leases")
}

fn version(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

// === the tests of the above ===

/// `log` is what it is, with the version that each write has seen, its holder, and the version that it has stored.
fn events(log: &[(&str, &str, &str, Option<&str>)]) -> Vec<AuditEvent> {
    let event = |(verb, seen, holder, stored): &(&str, &str, &str, Option<&str>)| {
        let version = |it: &str| (!it.is_empty()).then(|| it.to_owned());
        let spec = json!({ "holderIdentity": holder });
        let stored = stored.map(
            |it| json!({ "kind": "Lease", "spec": spec, "metadata": { "uid": "u", "resourceVersion": it } }),
        );
        serde_json::from_value(json!({
            "stage": "ResponseComplete", "requestURI": "/", "verb": verb, "user": {},
            "objectRef": { "resource": "leases", "name": "operator" },
            "responseStatus": { "code": if stored.is_some() { 200 } else { 504 } },
            "requestObject": { "spec": spec, "metadata": { "resourceVersion": version(seen) } },
            "responseObject": stored.unwrap_or_default(),
            "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z", "stageTimestamp": "2026-01-01T00:00:00.000001Z",
        }))
        .expect("an event")
    };
    log.iter().map(event).collect()
}

fn lease(holder: &str, version: &str) -> Value {
    json!({
        "spec": { "holderIdentity": holder }, "metadata": { "name": "operator", "uid": "u", "resourceVersion": version },
    })
}

/// The holders and versions that the writes stored. All are of one lease.
fn landed(log: &[AuditEvent]) -> Vec<(&str, u64)> {
    let writes = log.iter().filter(|it| it.write().is_some_and(|it| it.took_effect()));
    let stored = writes.map(|it| &it.response_object).inspect(|it| assert_eq!(it["metadata"]["uid"], "u"));
    stored.map(|it| (it["spec"]["holderIdentity"].as_str().unwrap(), version(it).unwrap())).collect()
}

pub fn write_without_its_sender_is_found_by_what_followed() {
    let mut log = events(&[
        ("create", "", "a", Some("3")),
        ("update", "3", "lost", None),
        ("update", "3", "a", Some("5")),
        ("update", "5", "", None), // the release
        ("update", "8", "b", Some("9")),
        ("update", "9", "c", None),
        ("update", "9", "d", None),
    ]);
    assert!(settle(&mut log, &[lease("d", "12")]));
    assert_eq!(landed(&log), [("a", 3), ("a", 5), ("", 8), ("b", 9), ("d", 12)]);
}

pub fn of_two_failed_writes_the_one_landed_that_was_continued() {
    for holders in [["a", "b"], ["b", "a"]] {
        let mut log = events(&[
            ("create", "", "a", Some("5")),
            ("update", "5", holders[0], None),
            ("update", "5", holders[1], None),
            ("update", "8", "b", Some("9")),
        ]);
        assert!(settle(&mut log, &[lease("b", "9")]));
        assert_eq!(landed(&log), [("a", 5), ("b", 8), ("b", 9)]);
    }
}

pub fn failed_create_is_not_taken_for_an_update() {
    let mut log = events(&[
        ("create", "", "b", None), // too late
        ("create", "", "a", Some("5")),
        ("update", "5", "a", None),
        ("update", "8", "a", Some("9")),
    ]);
    assert!(settle(&mut log, &[lease("a", "9")]));
    assert_eq!(landed(&log), [("a", 5), ("a", 8), ("a", 9)]);
    // Unless there was no lease before.
    let mut log = events(&[("create", "", "a", None), ("update", "5", "a", Some("8"))]);
    assert!(settle(&mut log, &[lease("a", "8")]));
    assert_eq!(landed(&log), [("a", 5), ("a", 8)]);
}

pub fn unknown_version_is_waited_for() {
    let mut log = events(&[("create", "", "a", Some("3")), ("update", "3", "b", None)]);
    assert!(settle(&mut log, &[lease("a", "3")]));
    assert!(!settle(&mut log, &[lease("c", "4")]), "nothing has written that");
    assert!(log.iter().filter_map(AuditEvent::write).filter(WriteRecord::took_effect).count() == 1);
    // The server was killed before it could log version 7.
    log.extend(events(&[("update", "7", "c", Some("8"))]));
    assert!(settle(&mut log, &[lease("c", "8")]));
}
