//! The wall clock, in the API's `MicroTime` format. It is for people and for other programs. No decision of this crate uses
//! it.

use jiff::{SignedDuration, Timestamp};

const FORMAT: &str = "%Y-%m-%dT%H:%M:%S%.6fZ";

pub(crate) fn now() -> String {
    micro(Timestamp::now())
}

/// Writes `time` as a `MicroTime`.
pub(crate) fn micro(time: Timestamp) -> String {
    time.strftime(FORMAT).to_string()
}

/// A clock that shows less than `seen`, but not by more than this, counts as one that stands still.
const STILL: SignedDuration = SignedDuration::from_secs(60);

/// Returns a time that no recent renewal has had: `time`, or the microsecond after `seen` if `time` is not later. A clock
/// may stand still, and another candidate may see only some of the renewals. A clock that was set back by more than a
/// minute is right: its times are new.
pub(crate) fn later_than(seen: Option<&str>, time: String) -> String {
    let parse = |text: &str| text.parse::<Timestamp>().ok();
    let next = seen.and_then(parse).zip(parse(&time)).and_then(|(seen, time)| {
        let behind = seen.duration_since(time);
        let stands = !behind.is_negative() && behind <= STILL;
        stands.then(|| seen.checked_add(SignedDuration::from_micros(1)).ok())?
    });
    next.map_or(time, micro)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s6_a_standing_clock_never_shows_a_time_again() {
        let time = "2026-01-02T03:04:05.999999Z";
        assert_eq!(later_than(None, time.into()), time);
        assert_eq!(later_than(Some("2026-01-02T03:04:05.000000Z"), time.into()), time);
        let first = later_than(Some(time), time.into());
        assert_eq!(first, "2026-01-02T03:04:06.000000Z");
        assert_eq!(later_than(Some(&first), time.into()), "2026-01-02T03:04:06.000001Z");
    }

    /// Another program may compare these times with its own clock, so a wrong one must not stay.
    #[test]
    fn a_clock_that_is_set_back_is_right() {
        let time = "2026-01-02T03:04:05.000000Z";
        assert_eq!(later_than(Some("2036-01-02T03:04:05.000000Z"), time.into()), time);
        for nonsense in ["", "now", "-", "9999-99-99T00:00:00Z"] {
            assert_eq!(later_than(Some(nonsense), time.into()), time);
        }
    }
}
