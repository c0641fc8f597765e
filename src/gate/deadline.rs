//! The deadline of a request: the API server learns until when it may work on a write.

use crate::request::has_no_room;
use http::{Uri, uri::PathAndQuery};
use std::time::Duration;

/// The shortest limit. The API server would read zero as no limit.
const LEAST: Duration = Duration::from_millis(1);
/// The longest limit. Go cannot read a duration of more than 292 years, and the server's own limit is far below an hour.
const MOST: Duration = Duration::from_secs(60 * 60);

/// The longest path with a query that every version of the crate `http` takes, in bytes.
const LONGEST: usize = 65_534;

/// `uri` with a `timeout` of `left`. None if the caller's own `timeout` is not longer, or if the URI would be too long or have
/// too many pairs. Allocates once.
///
/// The server reads the first `timeout` of a query, so this one goes to the front.
pub(super) fn within(uri: &Uri, left: Duration) -> Option<Uri> {
    let query = uri.query().unwrap_or_default();
    if callers(query).is_some_and(|callers| callers <= left) {
        return None;
    }
    let left = u64::try_from(left.clamp(LEAST, MOST).as_millis()).unwrap_or(u64::MAX);
    // kube puts one separator in front of the first pair.
    let rest = query.strip_prefix('&').unwrap_or(query);
    let mut digits = itoa::Buffer::new();
    let separator = if rest.is_empty() { "" } else { "&" };
    let texts = [uri.path(), "?timeout=", digits.format(left), "ms", separator, rest];
    let length: usize = texts.iter().map(|text| text.len()).sum();
    if length > LONGEST || has_no_room(rest) {
        return None;
    }
    let path_and_query = PathAndQuery::try_from(texts.concat()).ok()?;
    if uri.authority().is_none() {
        return Some(path_and_query.into());
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path_and_query);
    Uri::from_parts(parts).ok()
}

/// The caller's own limit, if the server certainly reads the same limit: neither its pair nor a pair before it has an escape
/// (`%` or `+`) or a semicolon. None if there is no such limit, or if it is zero, which means no limit.
fn callers(query: &str) -> Option<Duration> {
    let plain = query.split('&').take_while(|pair| !pair.contains(['%', ';', '+']));
    let mut pairs = plain.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let (_, text) = pairs.find(|(key, _)| *key == "timeout")?;
    duration(text).filter(|limit| !limit.is_zero())
}

/// A duration as Go writes it: `1m30s`, `1.5s`, `500us`. None for what no client writes: a sign, or a number without a unit.
fn duration(text: &str) -> Option<Duration> {
    let (mut rest, mut sum) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|letter: char| letter.is_ascii_alphabetic())?);
        let end = after.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        let seconds = match unit {
            "ns" => 1e-9,
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            _ => return None,
        };
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let number: f64 = number.parse().ok().filter(|_| is_plain)?;
        sum = sum.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
        rest = next;
    }
    Some(sum)
}

#[path = "deadline_tests.rs"]
#[cfg(test)]
mod deadline_tests;
