//! What the server knows of a request once it has read its head.

use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, Method, header};

use super::cause::Cause;
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

    /// `dryRun=All`; nothing else is allowed.
    pub(super) fn dry_run(&self) -> Result<bool, Refusal> {
        let mut dry = false;
        for value in self.query.all("dryRun") {
            dry = self.check_dry_run(value)?;
        }
        Ok(dry)
    }

    pub(super) fn check_dry_run(&self, value: &str) -> Result<bool, Refusal> {
        if value == "All" {
            return Ok(true);
        }
        let Some(target) = self.target() else {
            return Ok(false);
        };
        let causes = [Cause::unsupported("dryRun", value, "All")];
        Err(Refusal::invalid("Options.meta.k8s.io", &target.collection, "", &causes))
    }

    /// The client's own limit (`?timeout=3s`), which the server enforces. A watch has none.
    pub(super) fn timeout(&self) -> Option<Duration> {
        if self.verb == "watch" {
            return None;
        }
        parse_duration(self.query.get("timeout")?).filter(|it| !it.is_zero())
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

    /// Present and neither `0` nor `false`.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|it| it != "0" && !it.eq_ignore_ascii_case("false"))
    }
}

/// Go's durations, as far as clients write them: `3s`, `1m30s`, `1.5s`, `250ms`.
fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
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
    Some(total)
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
        for bad in ["3", "s", "3x", "-3s", "..s", "9999999999999999999999h"] {
            assert_eq!(ms(bad), None, "{bad}");
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
