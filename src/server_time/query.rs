//! The parameter `timeout` of a query.

use crate::request::{has_no_room, timeout_of};
use http::{Uri, uri::PathAndQuery};
use std::time::Duration;

/// The server takes no smaller unit.
const LEAST: Duration = Duration::from_millis(1);

/// The longest duration of Go: an `int64` of nanoseconds.
const MOST_SECONDS: f64 = 9_223_372_036.0;

/// The longest path with a query that every version of the crate `http` takes, in bytes.
const LONGEST: usize = 65_534;

/// `uri` with a `timeout` of `left`. None if the caller's own is shorter, or if the URI would be too long or have too many
/// pairs.
///
/// The server reads the first `timeout` of a query, so this one goes to the front.
pub(super) fn within(uri: &Uri, left: Duration) -> Option<Uri> {
    let query = uri.query().unwrap_or_default();
    if callers(query).is_some_and(|callers| callers <= left) {
        return None;
    }
    let left = left.max(LEAST).as_millis();
    // kube puts one separator in front of the first pair.
    let rest = query.strip_prefix('&').unwrap_or(query);
    let separator = if rest.is_empty() { "" } else { "&" };
    let path_and_query = format!("{}?timeout={left}ms{separator}{rest}", uri.path());
    if path_and_query.len() > LONGEST || has_no_room(rest) {
        return None;
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path_and_query).ok()?);
    Uri::from_parts(parts).ok()
}

/// The caller's own limit, as the server reads it: zero and less mean none. A text that the server refuses counts as
/// zero time, so that the server's answer stays what it is.
fn callers(query: &str) -> Option<Duration> {
    let text = timeout_of(query).filter(|text| !text.is_empty())?;
    let seconds = seconds_of(&text).filter(|seconds| seconds.abs() <= MOST_SECONDS);
    seconds.map_or(Some(Duration::ZERO), |seconds| {
        (seconds > 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    })
}

/// Reads a duration as Go's `time.ParseDuration` does: numbers with units, in any order, which it adds up. None if Go
/// refuses the text.
fn seconds_of(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0.0);
    }
    let of_number = |char: char| char.is_ascii_digit() || char == '.';
    let mut sum = 0.0;
    loop {
        let (number, after) = rest.split_at(rest.find(|char| !of_number(char))?);
        let (unit, next) = after.split_at(after.find(of_number).unwrap_or(after.len()));
        let unit = match unit {
            "ns" => 1e-9,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        sum += number.parse::<f64>().ok()? * unit;
        if next.is_empty() {
            return Some(sign * sum);
        }
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounded(uri: &str, left: Duration) -> Option<String> {
        within(&uri.parse().unwrap(), left).map(|uri| uri.to_string())
    }

    #[test]
    fn write_gets_what_is_left() {
        let left = Duration::from_micros(8_123_900);
        let cases = [
            ("/api/v1/nodes", "/api/v1/nodes?timeout=8123ms"),
            ("/api/v1/nodes?", "/api/v1/nodes?timeout=8123ms"),
            ("/api/v1/nodes?&fieldManager=x", "/api/v1/nodes?timeout=8123ms&fieldManager=x"),
            ("https://host:1/api/v1/nodes?a=b&&c", "https://host:1/api/v1/nodes?timeout=8123ms&a=b&&c"),
            ("/api/v1/nodes/a%2Fb?x=%20", "/api/v1/nodes/a%2Fb?timeout=8123ms&x=%20"),
            // Longer, or none by the server's reading.
            ("/n?timeout=9s", "/n?timeout=8123ms&timeout=9s"),
            ("/n?timeout=1m30s", "/n?timeout=8123ms&timeout=1m30s"),
            ("/n?timeout=0s", "/n?timeout=8123ms&timeout=0s"),
            ("/n?timeout=0", "/n?timeout=8123ms&timeout=0"),
            ("/n?timeout=-1s", "/n?timeout=8123ms&timeout=-1s"),
            ("/n?timeout=-0", "/n?timeout=8123ms&timeout=-0"),
            ("/n?timeout=9000000%C2%B5s", "/n?timeout=8123ms&timeout=9000000%C2%B5s"),
            ("/n?timeout=", "/n?timeout=8123ms&timeout="),
            // The server adds the parts up, in any order.
            ("/n?timeout=1s1h", "/n?timeout=8123ms&timeout=1s1h"),
            ("/n?timeout=1.5h30m", "/n?timeout=8123ms&timeout=1.5h30m"),
            ("/n?timeout=.5h", "/n?timeout=8123ms&timeout=.5h"),
            ("/n?timeout=1.h", "/n?timeout=8123ms&timeout=1.h"),
            ("/n?timeout=%2B0.123456789012h", "/n?timeout=8123ms&timeout=%2B0.123456789012h"),
            ("/n?timeoutSeconds=1", "/n?timeout=8123ms&timeoutSeconds=1"),
            ("/n?Timeout=1s", "/n?timeout=8123ms&Timeout=1s"),
            // The server drops a pair with a broken escape or a semicolon.
            ("/n?timeout=1s;&x=y", "/n?timeout=8123ms&timeout=1s;&x=y"),
            ("/n?timeout=1s%2", "/n?timeout=8123ms&timeout=1s%2"),
        ];
        for (uri, expected) in cases {
            assert_eq!(bounded(uri, left).as_deref(), Some(expected), "{uri}");
        }
    }

    #[test]
    fn shorter_limit_of_caller_stays() {
        let queries = [
            "timeout=8s",
            "timeout=8.123s",
            "timeout=7999ms",
            "timeout=3us",
            "x=y&timeout=1s",
            "t%69meout=1s",
            "timeout=%31s",
            // The server answers 400.
            "timeout=x",
            "timeout=1",
            "timeout=1+s",
            "timeout=1%20hour",
            "timeout=PT1H",
            "timeout=1:00:00",
            "timeout=1h%20ago",
            "timeout=h",
            "timeout=.h",
            "timeout=1.2.3h",
            "timeout=1h1",
            "timeout=-",
            "timeout=9999999h",
            "timeout=-9999999h",
        ];
        for query in queries {
            assert_eq!(bounded(&format!("/n?{query}"), Duration::from_micros(8_123_900)), None, "{query}");
        }
        assert_eq!(bounded("/n?timeout=1s&timeout=9s", Duration::from_secs(2)), None, "the first counts");
    }

    #[test]
    fn limit_is_never_zero() {
        for left in [Duration::ZERO, Duration::from_nanos(1)] {
            assert_eq!(bounded("/n", left).as_deref(), Some("/n?timeout=1ms"));
        }
    }

    /// With one pair more, the server would ignore the whole query, `dryRun` too.
    #[test]
    fn query_with_as_many_pairs_as_the_server_reads_stays() {
        let query = |pairs: usize| format!("/n?dryRun=All{}", "&".repeat(pairs - 1));
        assert!(bounded(&query(9_999), Duration::from_secs(1)).is_some());
        assert!(bounded(&query(10_000), Duration::from_secs(1)).is_none());
    }

    #[test]
    fn uri_without_room_stays() {
        let uri = format!("/n?x={}", "y".repeat(65_520));
        assert!(bounded(&uri, Duration::from_secs(1)).is_none());
    }
}
