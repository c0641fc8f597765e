//! The options of a list or watch.

use std::time::Duration;

use crate::cause::Cause;
use crate::object::version::asked_version;
use crate::path::{Collection, Target};
use crate::request::query::Query;
use crate::select::selector::Selector;
use crate::status::Refusal;
use crate::store::filter::Filter;

#[derive(Debug)]
pub(crate) struct ListOptions {
    pub(crate) selector: Selector,
    /// 0 if absent: any version will do.
    pub(crate) version: u64,
    pub(crate) matching: Match,
    pub(crate) send_initial_events: Option<bool>,
    pub(crate) bookmarks: bool,
    pub(crate) timeout: Option<Duration>,
    /// The largest number of items. 0 for all.
    pub(crate) limit: usize,
    pub(crate) from: Option<Continue>,
}

/// `resourceVersionMatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Unsaid,
    NotOlderThan,
    Exact,
}

/// The object after which the next page of a list begins. Its token is `VERSION.NAMESPACE/NAME`.
#[derive(Debug)]
pub(crate) struct Continue {
    /// The version of the first page.
    pub(crate) version: u64,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

// === impl ListOptions ===

impl ListOptions {
    pub(crate) fn parse(
        collection: &Collection,
        name: Option<&str>,
        query: &Query,
        watch: bool,
    ) -> Result<Self, Refusal> {
        let seconds = query.number("timeoutSeconds")?;
        let limit = query.number("limit")?;
        let text = |name: &str| query.get(name).unwrap_or_default();
        let selector = Selector::parse(collection, name, text("fieldSelector"), text("labelSelector"))?;
        let (version, matching, token) =
            (text("resourceVersion"), text("resourceVersionMatch"), text("continue"));
        let send_initial_events = query.get("sendInitialEvents").map(|_| query.flag("sendInitialEvents"));
        let causes = if watch {
            watch_complaints(matching, send_initial_events, token)
        } else {
            list_complaint(matching, send_initial_events, version).into_iter().collect()
        };
        if !causes.is_empty() {
            return Err(Refusal::invalid_options("ListOptions", &causes));
        }
        // The real server does not wrap this error for a watch.
        let version = asked_version(version).map_err(|why| {
            if watch {
                Refusal::internal(why)
            } else {
                Refusal::bad_request(format!("invalid resource version: {why}"))
            }
        })?;
        let from = if token.is_empty() { None } else { Some(Continue::parse(token)?) };
        Ok(Self {
            selector,
            version,
            matching: match matching {
                "NotOlderThan" => Match::NotOlderThan,
                "Exact" => Match::Exact,
                _ => Match::Unsaid,
            },
            send_initial_events,
            bookmarks: query.flag("allowWatchBookmarks"),
            timeout: seconds
                .and_then(|it| u64::try_from(it).ok())
                .filter(|it| *it > 0)
                .map(Duration::from_secs),
            limit: limit.and_then(|it| usize::try_from(it).ok()).unwrap_or_default(),
            from,
        })
    }

    /// The version whose objects the client wants, and those of no other.
    pub(crate) fn exact_version(&self) -> Option<u64> {
        let exact = match self.matching {
            Match::Exact => true,
            Match::NotOlderThan => false,
            Match::Unsaid => self.limit > 0 && self.version > 0,
        };
        self.from.as_ref().map(|it| it.version).or_else(|| exact.then_some(self.version))
    }

    /// The objects of the collection that the client wants.
    pub(crate) fn filter(&self, target: &Target) -> Filter {
        Filter {
            collection: target.collection.clone(),
            namespace: target.namespace.clone(),
            selector: self.selector.clone(),
        }
    }
}

fn watch_complaints(matching: &str, send_initial_events: Option<bool>, token: &str) -> Vec<Cause> {
    let field = "resourceVersionMatch";
    let mut causes = Vec::new();
    match (matching, send_initial_events) {
        ("", None) | ("NotOlderThan", Some(_)) => {}
        (_, None) => {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            causes.push(Cause::forbidden(field, why));
        }
        (_, Some(_)) => {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            causes.push(Cause::forbidden(field, why));
        }
    }
    if !matches!(matching, "" | "NotOlderThan") {
        causes.push(Cause::unsupported(field, &matching.into(), &["NotOlderThan"]));
    }
    if !token.is_empty() {
        causes.push(Cause::forbidden(field, "resourceVersionMatch is forbidden when continue is provided"));
    }
    causes
}

fn list_complaint(matching: &str, send_initial_events: Option<bool>, version: &str) -> Option<Cause> {
    let field = "resourceVersionMatch";
    if send_initial_events.is_some() {
        return Some(Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    match matching {
        "" => None,
        _ if version.is_empty() => {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            Some(Cause::forbidden(field, why))
        }
        "Exact" if version == "0" => {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            Some(Cause::forbidden(field, why))
        }
        "Exact" | "NotOlderThan" => None,
        other => Some(Cause::unsupported(field, &other.into(), &["Exact", "NotOlderThan", ""])),
    }
}

// === impl Continue ===

impl Continue {
    fn parse(token: &str) -> Result<Self, Refusal> {
        let parts = token.split_once('.').and_then(|(version, rest)| Some((version, rest.split_once('/')?)));
        match parts.map(|(version, rest)| (version.parse(), rest)) {
            Some((Ok(version), (namespace, name))) => {
                Ok(Self { version, namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err(Refusal::bad_request(
                "invalid continue token: continue key is not valid: it is none of this server's",
            )),
        }
    }

    pub(crate) fn token(&self) -> String {
        format!("{}.{}/{}", self.version, self.namespace, self.name)
    }
}
