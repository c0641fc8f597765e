//! No request passes that could be a write.

use super::reading::{Reading, lossy, values};
use http::{HeaderValue, Method, Request, Uri, header::CONNECTION};
use kube_leader_gate::{
    policy::{Policy, Preset, Rule},
    request::{RequestInfo, Verb},
};
use std::sync::LazyLock;

pub(super) const SEEDS: &[&str] = &[
    "GET /api/v1/namespaces/shop/pods/web-0",
    "GET /api/v1/namespaces/shop/pods/web-0/exec?command=ls\nUpgrade",
    "GET /api/v1/namespaces/shop/pods/web-0/attach",
    "GET /api/v1/namespaces/shop/pods/web-0/portforward",
    "GET /api/v1/namespaces/shop/pods/web-0/log?follow=true\nkeep-alive, Upgrade",
    "GET /apis/apps/v1/namespaces/a/deployments?watch=1&timeoutSeconds=5",
    "GET /api/v1/watch/namespaces/a/pods/x",
    "GET /api/v1/proxy/nodes/n/metrics",
    "GET /api/v1/namespaces/a/services/https:web:8443/proxy/a%2Fb;c/",
    "GET /apis/external.metrics.k8s.io/v1beta1/namespaces/a/pubsub%7Cmessages",
    "GET /apis/custom.metrics.k8s.io/v1beta1/namespaces/a/pods/*/http_requests",
    "GET /apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
    "GET /apis/example.com/v1/things/x/console/exec\nupgrade",
    "HEAD /apis/autoscaling/v2/horizontalpodautoscalers\nupgrade",
    "GET http://other:6443/api/v1/pods?watch=true",
    "OPTIONS /healthz",
    "OPTIONS *",
    "CONNECT other:443",
    "POST /api/v1/namespaces/a/events",
    "PATCH /apis/events.k8s.io/v1/namespaces/a/events/x",
    "POST /api/v1/namespaces/a/serviceaccounts/sa/token",
    "POST /apis/authorization.k8s.io/v1/subjectaccessreviews",
    "POST /apis/authentication.k8s.io/v1/tokenreviews?pretty=true",
    "PUT /apis/apps/v1/namespaces/a/deployments/web/scale?fieldManager=x&dryRun=All",
    "POST /api/v1/namespaces/a/pods/web-0/attach",
    "PATCH /apis/example.com/v1/namespaces/a/widgets/w/status?&force=true",
    "DELETE /api/v1/namespaces/a/configmaps?dryRun=All",
    "DELETE /api/v1/namespaces/a",
    "PUT /api/v1/namespaces/a/finalize",
];

pub(super) const WORDS: &[&str] = &[
    "GET ",
    "HEAD ",
    "OPTIONS ",
    "POST ",
    "PUT ",
    "PATCH ",
    "DELETE ",
    "CONNECT ",
    "TRACE ",
    "get ",
    "/api/v1/",
    "/apis/",
    "/api",
    "/exec",
    "/attach",
    "/portforward",
    "/proxy/",
    "/watch/",
    "/namespaces/",
    "/status",
    "/finalize",
    "/scale",
    "/token",
    "/eviction",
    "/log",
    "pods",
    "events",
    "widgets",
    "apps",
    "example.com",
    "events.k8s.io",
    "/v1",
    "v2",
    "%2F",
    "%2f",
    "%65",
    "%2E%2E",
    "%25",
    "%C0%AE",
    "%3B",
    "%5C",
    "%00",
    "%20",
    "..",
    "//",
    "/./",
    ";",
    "\\",
    "*",
    ":",
    "?",
    "&",
    "#",
    "?watch=1",
    "&watch=0",
    "?dryRun=All",
    "&dryRun=All",
    "dry%52un=All",
    "dryRun=all",
    "\nUpgrade",
    "\nkeep-alive",
    "http://h",
    "Exec",
    "EXEC",
    "é",
];

/// Every preset, rules of several shapes, and the policy with that exemption alone.
static POLICIES: LazyLock<Vec<(Exempts, Policy)>> = LazyLock::new(|| {
    let presets =
        Preset::ALL.iter().map(|preset| (Exempts::Preset(*preset), Policy::strict().allow(*preset)));
    let rule = Rule::new("", "configmaps").namespace("a").name("x").verbs(WRITES);
    let rules = [
        (Exempts::ConfigMapX, Policy::strict().allow(rule)),
        (Exempts::Status, Policy::strict().allow_status("example.com", "widgets")),
    ];
    presets.chain(rules).collect()
});

const WRITES: [Verb; 5] = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection];

#[derive(Clone, Copy, Debug)]
enum Exempts {
    Preset(Preset),
    /// The `ConfigMap` `x` in the namespace `a`.
    ConfigMapX,
    /// The status of widgets.
    Status,
}

/// A line with the method and the target, and lines with the values of `Connection` headers.
pub(super) fn body(bytes: &[u8]) {
    if let Some(request) = request(bytes) {
        check(&request);
    }
}

fn request(bytes: &[u8]) -> Option<Request<()>> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let first = str::from_utf8(lines.next()?).ok()?;
    let (method, target) = first.split_once(' ')?;
    let mut request = Request::new(());
    *request.method_mut() = method.parse().ok()?;
    *request.uri_mut() = target.parse().ok()?;
    for line in lines {
        request.headers_mut().append(CONNECTION, HeaderValue::from_bytes(line).ok()?);
    }
    Some(request)
}

fn check(request: &Request<()>) {
    let (method, uri, info) = (request.method(), request.uri(), RequestInfo::of(request));
    let values = request.headers().get_all(CONNECTION);
    let upgrade =
        values.iter().any(|it| it.as_bytes().to_ascii_lowercase().windows(7).any(|it| it == b"upgrade"));
    assert_eq!(info.is_upgrade(), upgrade, "{request:?}");
    let _ = (info.target().to_string(), format!("{info:?}"), info.name(), info.namespace());
    if info.is_read() {
        assert!(uri.path().starts_with('/'), "not a path: {request:?}");
        let verbs = [Verb::Get, Verb::List, Verb::Watch, Verb::Head, Verb::Options, Verb::Connect];
        assert!(verbs.contains(&info.verb()), "{:?}: {request:?}", info.verb());
    }
    // If the server refuses the path, nothing happens.
    if let Some(reading) = Reading::of(method.as_str(), uri.path()) {
        if info.is_read() {
            assert!(reading.is_read(method.as_str(), upgrade), "the server reads {reading:?}: {request:?}");
        }
        if info.is_parsed() && *method != Method::CONNECT {
            has_parts(&info, &reading);
        }
        if !info.is_read() {
            permits_what_it_says(&info, &reading);
        }
    }
    assert!(!Policy::strict().permits(&info), "{request:?}");
    stays(&info);
}

fn has_parts(info: &RequestInfo<'_>, reading: &Reading) {
    assert_eq!(!info.resource().is_empty(), reading.is_resource, "{info:?}: {reading:?}");
    if !info.resource().is_empty() {
        let name = |part: Option<std::borrow::Cow<'_, str>>| part.unwrap_or_default().into_owned();
        let ours = [
            info.group().to_owned(),
            info.version().to_owned(),
            name(info.namespace()),
            lossy(info.resource()).into_owned(),
            lossy(info.subresource()).into_owned(),
            name(info.name()),
        ];
        let Reading { group, version, namespace, resource, subresource, name, .. } = reading;
        assert_eq!(ours.each_ref(), [group, version, namespace, resource, subresource, name], "{info:?}");
    }
}

fn permits_what_it_says(info: &RequestInfo<'_>, reading: &Reading) {
    for (exempts, policy) in POLICIES.iter().filter(|(_, policy)| policy.permits(info)) {
        let means = reading.is_resource && reading.is_the_only_one() && exempts.means(info, reading);
        assert!(
            means,
            "{exempts:?} does not mean {info:?} {:?}, which the server reads {reading:?}",
            info.query()
        );
        assert!(policy.validate().is_ok());
    }
}

impl Exempts {
    /// As the documentation of each preset and rule says.
    fn means(self, info: &RequestInfo<'_>, reading: &Reading) -> bool {
        let target = (&*reading.group, &*reading.resource, &*reading.subresource);
        let verb = |verbs: &[&str]| {
            let connects =
                reading.is_command() || reading.subresource == "proxy" || reading.grants(info.is_upgrade());
            verbs.contains(&&*reading.verb) && !connects
        };
        match self {
            Self::Preset(Preset::AccessReviews) => {
                let reviews = "subjectaccessreviews localsubjectaccessreviews selfsubjectaccessreviews \
                               selfsubjectrulesreviews";
                verb(&["create"])
                    && (target == ("authentication.k8s.io", "selfsubjectreviews", "")
                        || target.0 == "authorization.k8s.io"
                            && reviews.split(' ').any(|review| (review, "") == (target.1, target.2)))
            }
            Self::Preset(Preset::TokenReviews) => {
                verb(&["create"]) && target == ("authentication.k8s.io", "tokenreviews", "")
            }
            Self::Preset(Preset::TokenRequests) => {
                verb(&["create"]) && target == ("", "serviceaccounts", "token")
            }
            Self::Preset(Preset::Events) => {
                verb(&["create", "update", "patch"]) && matches!(target, ("" | "events.k8s.io", "events", ""))
            }
            Self::Preset(Preset::DryRun) => {
                let values = values(info.query().unwrap_or_default(), "dryRun");
                let dry = !values.is_empty() && values.iter().all(|value| value == "All");
                dry && verb(&["create", "update", "patch"]) && matches!(target.2, "" | "status" | "scale")
            }
            Self::Preset(Preset::Exec) => {
                let method = matches!(*info.method(), Method::GET | Method::POST);
                method && reading.is_command() && (target.0, target.1) == ("", "pods")
            }
            Self::ConfigMapX => {
                verb(&["create", "update", "patch", "delete", "deletecollection"])
                    && target == ("", "configmaps", "")
                    && (&*reading.namespace, &*reading.name) == ("a", "x")
            }
            Self::Preset(preset) => panic!("say here what {preset:?} exempts"),
            Self::Status => verb(&["update", "patch"]) && target == ("example.com", "widgets", "status"),
        }
    }
}

/// Other spellings of the same request. None of them lets more through.
fn stays(info: &RequestInfo<'_>) {
    let (method, uri, upgrade) = (info.method(), info.path(), info.is_upgrade());
    let query = info.query().map(|query| format!("?{query}")).unwrap_or_default();
    let class = |method: &Method, target: &str| {
        let uri: Uri = target.parse().ok()?;
        let info = RequestInfo::from_parts(method, &uri, upgrade);
        let permitted = POLICIES.iter().map(|(_, policy)| policy.permits(&info)).collect::<Vec<_>>();
        Some((info.is_read(), permitted))
    };
    if !uri.starts_with('/') {
        return;
    }
    let Some((reads, permitted)) = class(method, &format!("{uri}{query}")) else { return };
    // A client removes a fragment.
    if let Some(fragment) = class(method, &format!("{uri}{query}#/exec?x")) {
        assert_eq!(fragment, (reads, permitted.clone()), "with a fragment: {info:?}");
    }
    let separator = if query.is_empty() { "?" } else { "&" };
    if let Some(longer) = class(method, &format!("{uri}{query}{separator}x=1")) {
        assert_eq!(longer.0, reads, "with a further parameter: {info:?}");
    }
    let lower = method.as_str().to_lowercase();
    if lower != method.as_str()
        && let Ok(lower) = lower.parse()
    {
        assert!(
            class(&lower, &format!("{uri}{query}")).is_none_or(|it| !it.0),
            "with small letters: {info:?}"
        );
    }
    // An escape of a letter, a digit or harmless punctuation hides what a server reads.
    for (at, byte) in uri.bytes().enumerate().take(300) {
        let in_escape = uri.as_bytes()[at.saturating_sub(2)..at].contains(&b'%');
        if in_escape || !(byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)) {
            continue;
        }
        let escaped = format!("{}%{byte:02X}{}{query}", &uri[..at], &uri[at + 1..]);
        if let Some((escaped_reads, escaped_permitted)) = class(method, &escaped) {
            assert!(!escaped_reads || reads, "{escaped} is a read, but {info:?} is none");
            let more = escaped_permitted.iter().zip(&permitted).any(|(escaped, plain)| *escaped && !plain);
            assert!(!more || reads, "{escaped} is permitted, but {info:?} is not");
        }
    }
}
