//! What the server knows of a request once it has read its head.

use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, Method, header};

use super::path::{Route, Target};
use super::status::Refusal;

const ANONYMOUS: &str = "anonymous";

/// The head of a request, understood.
#[derive(Debug, Default)]
pub(super) struct RequestInfo {
    pub(super) method: Method,
    /// As it came, without the query.
    pub(super) path: String,
    pub(super) route: Route,
    pub(super) verb: &'static str,
    pub(super) user: String,
    pub(super) user_agent: String,
    pub(super) content_type: String,
    pub(super) accept: String,
    pub(super) content_length: Option<u64>,
    pub(super) query: Query,
}

/// Decoded query parameters, in their order. The first of a name counts.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

// === impl RequestInfo ===

impl RequestInfo {
    pub(super) fn new(parts: &Parts, default_user: Option<&str>) -> Self {
        let route = Route::parse(parts.uri.path());
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let verb = verb(&parts.method, &route, &query);
        let text = |name| header_text(&parts.headers, name);
        let token = text(header::AUTHORIZATION);
        let token = token.strip_prefix("Bearer ").map(str::trim).filter(|it| !it.is_empty());
        Self {
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            route,
            verb,
            user: token.or(default_user).unwrap_or(ANONYMOUS).to_owned(),
            user_agent: text(header::USER_AGENT),
            content_type: text(header::CONTENT_TYPE),
            accept: text(header::ACCEPT),
            content_length: text(header::CONTENT_LENGTH).parse().ok(),
            query,
        }
    }

    /// Whether the method is one that changes something; such requests are in the write log.
    pub(super) fn is_write(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD | Method::OPTIONS)
    }

    pub(super) fn target(&self) -> Option<&Target> {
        match &self.route {
            Route::Resource(target) => Some(target),
            Route::Other(_) | Route::Unknown => None,
        }
    }

    /// Whether the query asks for a dry run; what comes of it is settled with the body.
    pub(super) fn asks_dry_run(&self) -> bool {
        self.query.all("dryRun").any(|it| it == "All")
    }

    /// The client's own limit (`?timeout=3s`), which the server enforces. A watch has none.
    pub(super) fn timeout(&self) -> Result<Option<Duration>, Refusal> {
        if self.verb == "watch" {
            return Ok(None);
        }
        let text = self.query.get("timeout").unwrap_or_default();
        if text.is_empty() {
            return Ok(None);
        }
        match parse_duration(text) {
            Some(limit) => Ok(Some(limit).filter(|it| !it.is_zero())),
            None => Err(Refusal::bad_request(format!(
                "invalid timeout specified in the request URL - time: invalid duration \"{text}\""
            ))),
        }
    }
}

fn header_text(headers: &HeaderMap, name: header::HeaderName) -> String {
    headers.get(name).map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned()).unwrap_or_default()
}

fn verb(method: &Method, route: &Route, query: &Query) -> &'static str {
    let target = match route {
        Route::Resource(target) => Some(target),
        Route::Other(_) | Route::Unknown => None,
    };
    let named = target.is_some_and(|it| it.name.is_some());
    match (method.as_str(), target) {
        ("GET" | "HEAD", None) => "get",
        ("GET" | "HEAD", Some(target)) if target.legacy_watch => "watch",
        ("GET" | "HEAD", Some(_)) if named => "get",
        ("GET" | "HEAD", Some(_)) if query.flag("watch") => "watch",
        ("GET" | "HEAD", Some(_)) => "list",
        ("POST", Some(_)) => "create",
        ("POST", None) => "post",
        ("PUT", Some(_)) => "update",
        ("PUT", None) => "put",
        ("PATCH", _) => "patch",
        ("DELETE", Some(_)) if !named => "deletecollection",
        ("DELETE", _) => "delete",
        ("OPTIONS", _) => "options",
        _ => "",
    }
}

// === impl Query ===

impl Query {
    /// A pair with a `;` or a bad escape is dropped, as Go drops it.
    fn parse(query: &str) -> Self {
        let decode = |it: &str| {
            let spaced = it.replace('+', " ");
            percent_encoding::percent_decode_str(&spaced).decode_utf8().ok().map(std::borrow::Cow::into_owned)
        };
        let pair = |it: &str| {
            let (name, value) = it.split_once('=').unwrap_or((it, ""));
            Some((decode(name)?, decode(value)?))
        };
        Self(query.split('&').filter(|it| !it.is_empty() && !it.contains(';')).filter_map(pair).collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |it| it.0 == name).map(|it| it.1.as_str())
    }

    /// A whole number, in Go's words where it is none.
    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, Refusal> {
        let Some(text) = self.get(name).filter(|it| !it.is_empty()) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => {
                Err(Refusal::bad_request(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax")))
            }
        }
    }

    /// Present and neither `0` nor `false`.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|it| it != "0" && !it.eq_ignore_ascii_case("false"))
    }
}

/// Go's durations, as far as clients write them: `3s`, `1m30s`, `1.5s`, `250ms`. A negative one counts as
/// zero.
fn parse_duration(text: &str) -> Option<Duration> {
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
    // Go counts nanoseconds in 63 bits.
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

    #[test]
    fn flags_are_read_as_the_server_reads_them() {
        for yes in ["watch", "watch=", "watch=1", "watch=no", "watch=1&watch=0", "a=b;c&watch=true"] {
            assert!(Query::parse(yes).flag("watch"), "{yes}");
        }
        for no in ["", "watch=0", "watch=false", "watch=False", "watch=0&watch=1", "watch=1;a", "watch=%ff"] {
            assert!(!Query::parse(no).flag("watch"), "{no}");
        }
    }
}
