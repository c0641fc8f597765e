//! Times as Kubernetes reads and writes them.

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};

/// Reads an RFC 3339 time into UTC, as strictly as Go does: `T` and `Z` are capitals, an offset has a colon.
/// With `micro`, the fraction has exactly six digits. Otherwise it has any number of digits, or is absent.
pub(crate) fn parse(text: &str, micro: bool) -> Option<DateTime> {
    let (civil, rest) = text.split_at_checked(19)?;
    let form = b"0000-00-00T00:00:00";
    let same =
        |(found, wanted): (u8, &u8)| if *wanted == b'0' { found.is_ascii_digit() } else { found == *wanted };
    if !civil.bytes().zip(form).all(same) {
        return None;
    }
    // The parser rounds a second 60 down, and Go refuses it.
    if &civil[17..19] == "60" {
        return None;
    }
    let civil: DateTime = civil.parse().ok()?;
    let (nanoseconds, rest) = match rest.strip_prefix(['.', ',']) {
        Some(fraction) => {
            let end = fraction.find(|it: char| !it.is_ascii_digit()).unwrap_or(fraction.len());
            if end == 0 || micro && end != 6 {
                return None;
            }
            (format!("{:0<9}", &fraction[..end])[..9].parse::<i64>().ok()?, &fraction[end..])
        }
        None if micro => return None,
        None => (0, rest),
    };
    let offset = offset(rest)?;
    civil.checked_add(SignedDuration::from_nanos(nanoseconds)).ok()?.checked_sub(offset).ok()
}

/// Reads `Z` or `+01:00`.
fn offset(text: &str) -> Option<SignedDuration> {
    if text == "Z" {
        return Some(SignedDuration::ZERO);
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |it: &str, limit: i64| -> Option<i64> {
        let digits = it.len() == 2 && it.bytes().all(|it| it.is_ascii_digit());
        it.parse().ok().filter(|it| digits && *it <= limit)
    };
    Some(SignedDuration::from_mins(sign * (number(hours, 24)? * 60 + number(minutes, 60)?)))
}

/// Writes a `MicroTime`: always six digits.
pub(crate) fn micro(time: DateTime) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// Writes a `Time`: whole seconds.
pub(crate) fn seconds(time: DateTime) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The wall clock, in whole seconds.
pub(crate) fn now() -> String {
    let now = Timestamp::now().as_second();
    Timestamp::from_second(now).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micro_times() {
        for (text, want) in [
            ("2026-01-02T03:04:05.000006Z", "2026-01-02T03:04:05.000006Z"),
            ("2026-01-02T03:04:05,000006Z", "2026-01-02T03:04:05.000006Z"),
            ("2026-01-02T03:04:05.000000+02:00", "2026-01-02T01:04:05.000000Z"),
            ("2026-01-02T03:04:05.678901-11:30", "2026-01-02T14:34:05.678901Z"),
            ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
            ("0000-01-01T00:00:00.000000Z", "0000-01-01T00:00:00.000000Z"),
        ] {
            assert_eq!(parse(text, true).map(micro).as_deref(), Some(want), "{text}");
        }
        for bad in [
            "",
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.000006789Z",
            "2026-01-02t03:04:05.000006Z",
            "2026-01-02T03:04:05.000006z",
            "2026-01-02 03:04:05.000006Z",
            "2026-01-02T03:04:05.000006",
            "2026-01-02T03:04:05.000006+0200",
            "2026-01-02T03:04:05.000006+25:00",
            "2026-01-02T03:04:60.000006Z",
            "2026-02-30T03:04:05.000006Z",
            "2026-01-02T03:04:05.000006Z[UTC]",
            "2026-01-02T03:04:0é.000006Z",
            "x.123456",
        ] {
            assert_eq!(parse(bad, true), None, "{bad}");
        }
    }

    #[test]
    fn times() {
        for (text, want) in [
            ("2026-01-02T03:04:05Z", Some("2026-01-02T03:04:05Z")),
            ("2026-01-02T03:04:05.9+01:00", Some("2026-01-02T02:04:05Z")),
            ("2026-01-02T03:04:05.Z", None),
        ] {
            assert_eq!(parse(text, false).map(seconds).as_deref(), want, "{text}");
        }
    }
}
