//! The deadline of a request: the API server learns until when it may work on a write.

use crate::request::has_no_room;
use http::{Uri, uri::PathAndQuery};
use std::{fmt::Write, time::Duration};

/// The server takes no smaller unit.
const LEAST: Duration = Duration::from_millis(1);

/// The longest path with a query that every version of the crate `http` takes, in bytes.
const LONGEST: usize = 65_534;

/// `uri` with a `timeout` of `left`. None if the caller's own is shorter, or if the URI would be too long or have too many
/// pairs. Allocates once.
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
    let digits = left.checked_ilog10().unwrap_or_default() as usize + 1;
    // The exact length: so the text becomes the URI without a copy.
    let length = uri.path().len() + "?timeout=ms".len() + digits + separator.len() + rest.len();
    if length > LONGEST || has_no_room(rest) {
        return None;
    }
    let mut text = String::with_capacity(length);
    write!(text, "{}?timeout={left}ms{separator}{rest}", uri.path()).ok()?;
    let path_and_query = PathAndQuery::try_from(text).ok()?;
    if uri.authority().is_none() {
        return Some(path_and_query.into());
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path_and_query);
    Uri::from_parts(parts).ok()
}

/// The caller's own limit, if the server surely reads the same: it is one whole number with a unit, and no pair before it
/// has an escape or a semicolon. Zero means none.
fn callers(query: &str) -> Option<Duration> {
    let plain = query.split('&').take_while(|pair| !pair.contains(['%', ';', '+']));
    let mut pairs = plain.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let (_, text) = pairs.find(|(key, _)| *key == "timeout")?;
    let (number, unit) = text.split_at(text.find(|char: char| !char.is_ascii_digit())?);
    let number = number.parse().ok().filter(|number| *number > 0)?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        _ => None,
    }
}

#[path = "deadline_tests.rs"]
#[cfg(test)]
mod deadline_tests;
