//! The wall clock, in the API's `MicroTime` format. It is for people and for a coordinator. Of all decisions of this
//! crate only early takeover uses it: it compares a holder's times with a time of the same clock.

use crate::defect;
use jiff::{SignedDuration, Timestamp};

const FORMAT: &str = "%Y-%m-%dT%H:%M:%S%.6fZ";

pub(super) fn now() -> String {
    micro(Timestamp::now())
}

/// Writes `time` as a `MicroTime`.
pub(super) fn micro(time: Timestamp) -> String {
    time.strftime(FORMAT).to_string()
}

/// Returns `time`, or the next microsecond if `time` equals `seen`. A clock may stand still.
pub(super) fn other_than(seen: Option<&str>, time: String) -> String {
    if seen != Some(time.as_str()) || defect::is_back("standing-clock") {
        return time;
    }
    let next = time.parse::<Timestamp>().and_then(|time| time.checked_add(SignedDuration::from_micros(1)));
    next.map_or(time, |next| next.strftime(FORMAT).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_time_moves_by_a_microsecond() {
        let time = "2026-01-02T03:04:05.999999Z";
        assert_eq!(other_than(Some(time), time.into()), "2026-01-02T03:04:06.000000Z");
        assert_eq!(other_than(Some("2026-01-02T03:04:05.000000Z"), time.into()), time);
        assert_eq!(other_than(None, time.into()), time);
    }
}
