//! Requests: what the server reads from the head, the query and the body.

pub(crate) mod body;
mod duration;
pub(crate) mod list;
pub(crate) mod negotiate;
pub(crate) mod query;
pub(crate) mod write;

use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, Method, header};

use crate::path::{Route, Target};
use crate::request::duration::parse_duration;
use crate::request::query::Query;
use crate::status::Refusal;

const ANONYMOUS: &str = "anonymous";

/// What the head of a request says.
#[derive(Debug, Default)]
pub(crate) struct RequestInfo {
    pub(crate) method: Method,
    /// The path as the client sent it, without the query.
    pub(crate) path: String,
    pub(crate) route: Route,
    pub(crate) verb: &'static str,
    pub(crate) user: String,
    pub(crate) user_agent: String,
    pub(crate) content_type: String,
    pub(crate) accept: String,
    pub(crate) content_length: Option<u64>,
    pub(crate) query: Query,
}

// === impl RequestInfo ===

impl RequestInfo {
    pub(crate) fn new(parts: &Parts, default_user: Option<&str>) -> Self {
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

    /// Whether the method is one of a write. The write log has all such requests.
    pub(crate) fn is_write(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD | Method::OPTIONS)
    }

    pub(crate) fn target(&self) -> Option<&Target> {
        match &self.route {
            Route::Resource(target) => Some(target),
            Route::Other(_) | Route::Unknown => None,
        }
    }

    /// Whether the query asks for a dry run. The body may decide otherwise.
    pub(crate) fn asks_dry_run(&self) -> bool {
        self.query.all("dryRun").any(|it| it == "All")
    }

    /// The client's time limit (`?timeout=3s`), which the server enforces. A watch has none.
    pub(crate) fn timeout(&self) -> Result<Option<Duration>, Refusal> {
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
