//! Durations as Go reads them.

use std::time::Duration;

/// Reads a duration such as `3s`, `1m30s`, `1.5s`, `250ms`. A negative one counts as zero.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|it: char| !it.is_ascii_digit() && it != '.')?;
        let (number, tail) = rest.split_at(digits);
        let unit = tail.find(|it: char| it.is_ascii_digit() || it == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        total = total.checked_add(part)?;
        rest = tail;
    }
    // Go's durations are nanoseconds in 63 bits.
    i64::try_from(total.as_nanos()).ok()?;
    Some(if negative { Duration::ZERO } else { total })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let ms = |it| parse_duration(it).map(|it| it.as_millis());
        assert_eq!(ms("3s"), Some(3_000));
        assert_eq!(ms("1m30.5s"), Some(90_500));
        assert_eq!(ms("250ms"), Some(250));
        for unlimited in ["0", "0s", "-3s"] {
            assert_eq!(parse_duration(unlimited), Some(Duration::ZERO), "{unlimited}");
        }
        for bad in ["", "-", "3", "s", "3x", "..s", "999999999h", "9999999999999999999999h"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }
}
