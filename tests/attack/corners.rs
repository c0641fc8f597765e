//! How often each odd case came up. A property that never meets them proves nothing about them.

use crate::{oracle::Reading, requests::Request};
use std::{collections::BTreeMap, fmt::Write as _};

/// Each corner must come up this often in 100,000 requests; the rarest comes up several times as often on the average.
const LEAST: usize = 20;

/// Whether a request belongs to a corner.
type Is = fn(&Case<'_>) -> bool;

/// A request that was sent.
struct Case<'a> {
    request: &'a Request,
    /// The request without its flood.
    query: String,
    /// The pairs of the query with its flood, empty ones included.
    pairs: usize,
    path: &'a str,
    /// The path in lower case.
    lower: String,
    reading: &'a Reading,
    reads: bool,
}

const CORNERS: [(&str, Is); 43] = [
    ("a flood of 9,999 pairs", |it| it.pairs == 9_999),
    ("a flood of 10,000 pairs", |it| it.pairs == 10_000),
    ("a flood of 10,001 pairs", |it| it.pairs == 10_001),
    ("a flood of more", |it| it.pairs > 10_001),
    ("a dry run drowned in a flood", |it| {
        it.pairs > 10_000 && it.is_write() && it.query.contains("dryRun=All")
    }),
    ("a dry run in as many pairs as may be", |it| it.pairs > 9_998 && it.is_write() && it.reading.dry_run),
    ("a dry run", |it| it.reading.dry_run),
    ("options that the server refuses", |it| !it.reading.options_error.is_empty()),
    ("an escaped dryRun", |it| it.query.contains("dry%52un")),
    ("a repeated dryRun", |it| it.query.matches("dryRun=").count() > 1),
    ("an empty pair", |it| it.query.contains("&&")),
    ("a semicolon in the query", |it| it.query.contains(';')),
    ("a query that the parser complains of", |it| !it.reading.query_error.is_empty()),
    ("a plus in the query", |it| it.query.contains('+')),
    ("a watch", |it| it.reading.verb == "watch"),
    ("an escaped letter", |it| it.path.contains("%6") || it.path.contains("%7")),
    ("an escape of an escape", |it| it.path.contains("%25")),
    ("an escaped slash", |it| it.lower.contains("%2f")),
    ("an empty segment", |it| it.path.contains("//")),
    ("a slash at the end", |it| it.path.len() > 1 && it.path.ends_with('/')),
    ("segments of dots", |it| it.path.contains("/../") || it.path.contains("/./")),
    ("escaped dots", |it| it.lower.contains("%2e")),
    ("a semicolon in the path", |it| it.path.contains(';')),
    ("a backslash", |it| it.path.contains('\\') || it.lower.contains("%5c")),
    ("a capital", |it| {
        it.path.split('%').next().is_some_and(|plain| plain.contains(|it: char| it.is_uppercase()))
    }),
    ("raw Unicode", |it| !it.path.is_ascii() || !it.query.is_ascii()),
    ("a zero byte", |it| it.path.contains("%00")),
    ("a path that others read otherwise", |it| !it.reading.others.is_empty()),
    ("a metrics API", |it| it.path.contains("metrics.k8s.io") && it.path.contains(['*', ':'])),
    ("an escape in the name of a metric", |it| it.reads && it.path.contains("pubsub%7C")),
    ("a legacy watch with another method", |it| it.path.contains("/watch/") && it.is_write()),
    ("a legacy proxy", |it| it.reading.verb == "proxy"),
    ("a namespace's subresource", |it| {
        it.reading.resource == "namespaces" && it.reading.subresource == "finalize"
    }),
    ("an exec by GET", |it| it.request.method == "GET" && it.reading.subresource == "exec"),
    ("a misspelled exec", |it| it.reading.subresource == "exec" && !it.path.contains("/exec")),
    ("a proxied tail", |it| it.reading.subresource == "proxy" && it.reading.parts > 3),
    ("an odd method", |it| {
        !["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"].contains(&it.request.method)
    }),
    ("an upgrade of a write", |it| it.reading.upgrade && it.is_write()),
    ("an upgrade in another version of a built-in group", |it| {
        it.reading.upgrade && it.path.contains("apis/apps/v9/")
    }),
    ("an upgrade of a read", |it| it.reading.upgrade && it.reads),
    ("a WebSocket", |it| it.reading.websocket),
    ("an absolute target", |it| !it.request.origin.is_empty()),
    ("a request that the server refuses", |it| !it.reading.refused.is_empty()),
];

#[derive(Debug, Default)]
pub struct Corners {
    seen: BTreeMap<&'static str, usize>,
    /// Indexed by the number of the policy.
    permitted: BTreeMap<usize, usize>,
    reads: usize,
    refused: usize,
}

// === impl Case ===

impl Case<'_> {
    fn is_write(&self) -> bool {
        matches!(self.request.method, "POST" | "PUT" | "PATCH" | "DELETE")
    }
}

// === impl Corners ===

impl Corners {
    pub fn count(
        &mut self,
        request: &Request,
        sent: &http::Request<()>,
        reading: &Reading,
        reads: bool,
        permitted: &[usize],
    ) {
        let path = sent.uri().path();
        let case = Case {
            request,
            query: request.query.as_deref().unwrap_or_default().join("&"),
            pairs: request.query.as_ref().map_or(0, Vec::len) + request.flood.pairs,
            path,
            lower: path.to_ascii_lowercase(),
            reading,
            reads,
        };
        for (name, is) in CORNERS {
            *self.seen.entry(name).or_default() += usize::from(is(&case));
        }
        for policy in permitted {
            *self.permitted.entry(*policy).or_default() += 1;
        }
        self.reads += usize::from(reads);
        self.refused += usize::from(!reads && permitted.is_empty());
    }

    /// Fails if corners were hardly met, if exemptions were hardly used, or if nearly all requests went one way.
    pub fn complaints(&self, exemptions: &[String]) -> String {
        let used = |policy| self.permitted.get(&policy).copied().unwrap_or_default();
        let used = exemptions.iter().enumerate().map(|(policy, name)| (used(policy), name.as_str()));
        let seen = self.seen.iter().map(|(name, count)| (*count, *name));
        let mut report = String::new();
        for (count, name) in seen.chain(used).filter(|(count, _)| *count < LEAST) {
            let _ = writeln!(report, "\nonly {count} requests, too few to say anything: {name}");
        }
        let ways = [self.reads, self.refused, self.permitted.values().sum()];
        if ways.iter().any(|count| *count < 1_000) {
            let _ = writeln!(report, "\nnearly all go one way: {self:#?}");
        }
        report
    }
}
