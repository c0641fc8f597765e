//! A watch gives the events that stand in its lines, whatever pieces they come in.

use super::leases::{self, answering, run};
use bytes::Bytes;
use futures_util::StreamExt;
use kube_leader_gate::lease::{LeaseEvent, Lock};
use serde_json::Value;

pub(super) const SEEDS: &[&str] = &[
    "\u{7}{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"default\",\"name\":\"operator\",\"uid\":\"u\",\"resourceVersion\":\"7\"},\"spec\":{\"holderIdentity\":\"a\",\"leaseDurationSeconds\":15}}}\n{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"namespace\":\"default\",\"name\":\"operator\",\"uid\":\"u\",\"resourceVersion\":\"8\"}}}\n{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"operator\",\"uid\":\"u\",\"resourceVersion\":\"9\"}}}\n",
    "\u{ff}{\"type\":\"BOOKMARK\",\"object\":{}}\n{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"other\",\"uid\":\"v\",\"resourceVersion\":\"1\"}}}\n{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"message\":\"too old resource version\"}}\n",
    "\u{1}\n\n{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"operator\"}}}\nnonsense\n{\"type\":\"MODIFIED\"",
    "\u{40}{\"type\":\"ADDED\",\"object\":{\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":\"default\",\"name\":\"me\",\"uid\":\"u\",\"resourceVersion\":\"3\"},\"data\":{\"leaseName\":\"operator\"}}}\r\n",
];

pub(super) const WORDS: &[&str] = &[
    "\n",
    "\r\n",
    "{\"type\":\"ADDED\",\"object\":",
    "\"type\":",
    "\"object\":",
    "\"ADDED\"",
    "\"MODIFIED\"",
    "\"DELETED\"",
    "\"BOOKMARK\"",
    "\"ERROR\"",
    "\"code\":",
    "410",
    "99999",
    "\"message\":",
    "{\"metadata\":{\"name\":\"operator\",\"uid\":\"u\",\"resourceVersion\":\"1\"}}}\n",
    "\"metadata\":",
    "\"name\":",
    "\"uid\":",
    "\"resourceVersion\":",
    "\"operator\"",
    "\"other\"",
    "\"spec\":",
    "null",
    "{",
    "}",
    "[",
    "]",
    ",",
];

/// The first byte is the length of a piece. The other bytes are the stream.
pub(super) fn body(bytes: &[u8]) {
    let Some((length, stream)) = bytes.split_first() else { return };
    let pieces = stream.chunks(usize::from(*length).max(1)).map(Bytes::copy_from_slice).collect();
    let events: Vec<_> = run(async {
        let events = answering(pieces).watch().await.expect("it was answered");
        events.map(|event| event.map_err(|error| error.kind())).collect().await
    });
    // A last line without a line feed does not count.
    let mut lines: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    lines.pop();
    let expected: Vec<_> = lines.into_iter().filter_map(expected).collect();
    assert_eq!(events.len(), expected.len(), "{}", String::from_utf8_lossy(stream));
    for (event, expected) in events.into_iter().zip(expected) {
        let (deleted, record) = match event {
            Ok(LeaseEvent::Seen(record)) => (false, record),
            Ok(LeaseEvent::Deleted(record)) => (true, record),
            Ok(other) => panic!("there is no such event: {other:?}"),
            Err(_) => {
                assert!(expected.is_err(), "{expected:?}");
                continue;
            }
        };
        leases::check(&record);
        assert_eq!(record.name(), "operator");
        assert_eq!(Ok((deleted, record.into_json())), expected);
    }
}

/// What the line says about the lease `operator`, read in the simplest way: whether it was deleted, and the object. None is
/// no news.
fn expected(line: &[u8]) -> Option<Result<(bool, Value), &'static str>> {
    let Ok(event) = serde_json::from_slice::<Value>(line) else { return Some(Err("not JSON")) };
    let object = event.get("object").cloned().unwrap_or_default();
    let deleted = match event.get("type").and_then(Value::as_str) {
        Some("ADDED" | "MODIFIED") => false,
        Some("DELETED") => true,
        Some("BOOKMARK") => return None,
        _ => return Some(Err("an error, or no known type")),
    };
    let text = |key: &str| object.pointer(&format!("/metadata/{key}")).and_then(Value::as_str);
    match text("name") {
        None => Some(Err("no name")),
        Some("operator") => {
            let sound =
                ["uid", "resourceVersion"].iter().all(|key| text(key).is_some_and(|it| !it.is_empty()))
                    && !text("uid").is_some_and(|it| it.contains(char::is_whitespace));
            Some(if sound { Ok((deleted, object.clone())) } else { Err("no lease") })
        }
        Some(_) => None,
    }
}
