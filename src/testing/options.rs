//! The options of a list or watch.

use std::time::Duration;

use super::cause::Cause;
use super::path::Collection;
use super::request::Query;
use super::selector::Selector;
use super::status::Refusal;

#[derive(Debug)]
pub(super) struct ListOptions {
    pub(super) selector: Selector,
    /// 0 and absent mean the same here: whatever there is.
    pub(super) version: u64,
    pub(super) not_older_than: bool,
    pub(super) send_initial_events: Option<bool>,
    pub(super) bookmarks: bool,
    pub(super) timeout: Option<Duration>,
}

// === impl ListOptions ===

impl ListOptions {
    /// `limit` is accepted and does nothing: every list is whole.
    pub(super) fn parse(
        collection: &Collection,
        name: Option<&str>,
        query: &Query,
        watch: bool,
    ) -> Result<Self, Refusal> {
        let by_name = name.map(|it| format!("metadata.name={it}"));
        let fields = query.get("fieldSelector").map(str::to_owned);
        let fields = [by_name, fields].into_iter().flatten().collect::<Vec<_>>().join(",");
        let version = query.get("resourceVersion").unwrap_or_default();
        let version_given = !version.is_empty();
        let version = match version {
            "" => 0,
            text => text
                .parse()
                .map_err(|_| Refusal::bad_request(format!("invalid resource version \"{text}\"")))?,
        };
        let matching = query.get("resourceVersionMatch").unwrap_or_default();
        let send_initial_events = query.get("sendInitialEvents").map(|_| query.flag("sendInitialEvents"));
        let complaint = if watch {
            watch_complaint(matching, send_initial_events)
        } else {
            list_complaint(matching, send_initial_events, version_given)
        };
        if let Some(cause) = complaint {
            return Err(Refusal::invalid("ListOptions.meta.k8s.io", collection, "", &[cause]));
        }
        let seconds = query.get("timeoutSeconds").and_then(|it| it.parse().ok()).filter(|it| *it > 0);
        Ok(Self {
            selector: Selector::parse(Some(&fields), query.get("labelSelector"))?,
            version,
            not_older_than: matching == "NotOlderThan",
            send_initial_events,
            bookmarks: query.flag("allowWatchBookmarks"),
            timeout: seconds.map(Duration::from_secs),
        })
    }
}

fn watch_complaint(matching: &str, send_initial_events: Option<bool>) -> Option<Cause> {
    match (matching, send_initial_events) {
        ("", None) | ("NotOlderThan", Some(_)) => None,
        (_, None) => {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            Some(Cause::forbidden("resourceVersionMatch", why))
        }
        (_, Some(_)) => {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            Some(Cause::forbidden("resourceVersionMatch", why))
        }
    }
}

fn list_complaint(matching: &str, send_initial_events: Option<bool>, version_given: bool) -> Option<Cause> {
    if send_initial_events.is_some() {
        return Some(Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    match matching {
        "" => None,
        _ if !version_given => {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            Some(Cause::forbidden("resourceVersionMatch", why))
        }
        "Exact" | "NotOlderThan" => None,
        other => Some(Cause::unsupported("resourceVersionMatch", other, "Exact\", \"NotOlderThan")),
    }
}
