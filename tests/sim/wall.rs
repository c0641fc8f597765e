//! Wrong wall clocks. A process reads the real wall clock, so the network moves the times in each lease and pod that the
//! process sends or receives. To the process, its own times look right and all others look wrong.

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};

/// What comes before a time, and how much further it begins: the number of a process stands before the time of a claim.
const TIMES: [(&str, usize); 4] = [
    ("\"acquireTime\":\"", 0),
    ("\"renewTime\":\"", 0),
    ("\"finishedAt\":\"", 0),
    ("\"kube-leader-gate/claim\":\"", "0000000000000000 ".len()),
];
const LENGTH: usize = "2026-01-02T03:04:05.000000Z".len();

/// The same text with all times of leases and pods later by so many seconds.
pub fn shift(text: Bytes, by: i64) -> Bytes {
    if by == 0 || text.is_empty() {
        return text;
    }
    // A watch that breaks may bring anything.
    let Ok(mut text) = String::from_utf8(text.to_vec()) else { return text };
    for (name, further) in TIMES {
        let starts: Vec<_> = text.match_indices(name).map(|(at, _)| at + name.len() + further).collect();
        for at in starts {
            let place = at..at + LENGTH;
            let Some(time) = text.get(place.clone()).and_then(|it| it.parse::<Timestamp>().ok()) else {
                continue;
            };
            let moved = time + SignedDuration::from_secs(by);
            text.replace_range(place, &moved.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string());
        }
    }
    text.into()
}

#[test]
fn shifted_times_come_back_as_they_were() {
    let text = r#"{"kube-leader-gate/claim":"00000000000000ff 2026-01-02T03:04:59.000001Z u 15s a","spec":{"acquireTime":"2026-01-02T03:04:05.123456Z","holderIdentity":"a","renewTime":"2026-01-02T03:04:59.000001Z"}}"#;
    let moved = shift(Bytes::from(text), 61);
    assert!(std::str::from_utf8(&moved).unwrap().contains("2026-01-02T03:05:06.123456Z"));
    assert!(std::str::from_utf8(&moved).unwrap().contains("ff 2026-01-02T03:06:00.000001Z u"));
    assert_eq!(shift(moved, -61), Bytes::from(text));
}
