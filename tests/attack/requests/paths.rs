//! The paths of requests: ordinary ones, of which `spelling` makes odd ones.

use super::{
    kinds::{KINDS, Kind, NAMES, NAMESPACES},
    pick,
};
use fastrand::Rng;

/// A path and the object that it names.
pub struct Place {
    pub path: Vec<String>,
    /// The methods that clients use for it.
    usual: &'static [&'static str],
}

const READS: &[&str] = &["GET", "GET", "GET", "HEAD", "OPTIONS", "POST"];
const COLLECTION: &[&str] = &["POST", "POST", "POST", "GET", "DELETE"];
const OBJECT: &[&str] = &["PUT", "PATCH", "PATCH", "DELETE", "GET"];
const SUBRESOURCE: &[&str] = &["PUT", "PATCH", "POST", "GET"];
const CONNECTION: &[&str] = &["GET", "GET", "POST", "DELETE", "PUT"];

const PLAIN: [&str; 12] = [
    "",
    "healthz",
    "version",
    "api",
    "apis",
    "api/v1",
    "apis/apps/v1",
    "apis/apps",
    "openapi/v3/apis/apps/v1",
    "metrics",
    ".well-known/openid-configuration",
    "debug/pprof/",
];

/// As metrics adapters and other aggregated APIs use them.
const UNUSUAL: [&str; 10] = [
    "apis/external.metrics.k8s.io/v1beta1/namespaces/a/s0-rabbitmq-queueName",
    "apis/external.metrics.k8s.io/v1beta1/namespaces/a/pubsub%7Cmessages",
    "apis/custom.metrics.k8s.io/v1beta1/namespaces/a/pods/%2A/pubsub%7Cexec",
    "apis/custom.metrics.k8s.io/v1beta1/namespaces/a/pods/*/http_requests",
    "apis/custom.metrics.k8s.io/v1beta1/namespaces/a/pods/*/ns:metric:rate5m",
    "apis/custom.metrics.k8s.io/v1beta1/namespaces/a/metrics/queue_length",
    "apis/metrics.k8s.io/v1beta1/nodes/web-0",
    "apis/agg.example.com/v1/namespaces/a/things/x/tail/of/its/own",
    "apis/agg.example.com/v1/namespaces/a/things/x/exec/of/its/own",
    "apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachineinstances/x/vnc",
];

pub fn place(rng: &mut Rng) -> Place {
    match rng.u8(..100) {
        0..62 => on_kind(rng),
        62..76 => connection(rng),
        76..83 => namespace(rng),
        83..89 => Place { path: split(pick(rng, &UNUSUAL)), usual: READS },
        89..94 => Place { path: split(pick(rng, &PLAIN)), usual: READS },
        _ => legacy(rng),
    }
}

impl Place {
    pub fn usual(&self, rng: &mut Rng) -> &'static str {
        pick(rng, self.usual)
    }
}

fn on_kind(rng: &mut Rng) -> Place {
    let kind = random_kind(rng);
    let mut path = root(rng, kind);
    if kind.namespaced && rng.u8(..8) > 0 {
        path.extend(["namespaces".to_owned(), pick(rng, &NAMESPACES).to_owned()]);
    }
    path.push(kind.resource.to_owned());
    let form = rng.u8(..100);
    if form < 40 {
        return Place { path, usual: COLLECTION };
    }
    path.push(name(rng));
    if form < 70 || kind.subresources.is_empty() {
        return Place { path, usual: OBJECT };
    }
    path.push(pick(rng, kind.subresources).to_owned());
    if rng.u8(..20) == 0 {
        path.push("x".to_owned());
    }
    Place { path, usual: SUBRESOURCE }
}

fn random_kind(rng: &mut Rng) -> Kind {
    let often = || KINDS.iter().flat_map(|kind| std::iter::repeat_n(kind, kind.weight));
    *often().nth(rng.usize(..often().count())).expect("it is less than the count")
}

/// Sometimes in a version that is not built in: there an operator can register another server's API.
fn root(rng: &mut Rng, kind: Kind) -> Vec<String> {
    let version = if rng.u8(..16) == 0 { "v9" } else { kind.version }.to_owned();
    if kind.group.is_empty() {
        vec!["api".to_owned(), version]
    } else {
        vec!["apis".to_owned(), kind.group.to_owned(), version]
    }
}

fn connection(rng: &mut Rng) -> Place {
    let name = name(rng);
    let mut path = match rng.u8(..10) {
        0..6 => {
            let subresource = pick(rng, &["exec", "attach", "portforward", "proxy"]);
            split(&format!("api/v1/namespaces/{}/pods/{name}/{subresource}", pick(rng, &NAMESPACES)))
        }
        6 => split(&format!("api/v1/nodes/{name}/proxy")),
        7..9 => {
            let service = pick(rng, &["x", "https:x:8443", "x:http"]);
            split(&format!("api/v1/namespaces/a/services/{service}/proxy"))
        }
        _ => {
            let subresource = pick(rng, &["exec", "attach", "portforward", "proxy"]);
            split(&format!("apis/agg.example.com/v1/namespaces/a/things/{name}/{subresource}"))
        }
    };
    if path.last().is_some_and(|it| it == "proxy") && rng.bool() {
        path.extend(split(pick(
            rng,
            &["metrics", "api/queues/%2F/q", "a/../b", "exec", "run/a/x/c", "", "a//b"],
        )));
    }
    Place { path, usual: CONNECTION }
}

fn namespace(rng: &mut Rng) -> Place {
    let mut path = split("api/v1/namespaces");
    match rng.u8(..4) {
        0 => return Place { path, usual: COLLECTION },
        1 => {
            path.push(pick(rng, &NAMESPACES).to_owned());
            return Place { path, usual: OBJECT };
        }
        _ => {}
    }
    path.push(pick(rng, &NAMESPACES).to_owned());
    path.push(pick(rng, &["status", "finalize"]).to_owned());
    if rng.u8(..4) == 0 {
        path.push(pick(rng, &["exec", "x", ""]).to_owned());
    }
    Place { path, usual: SUBRESOURCE }
}

/// The verbs that were once part of paths.
fn legacy(rng: &mut Rng) -> Place {
    let mut place = if rng.bool() { on_kind(rng) } else { connection(rng) };
    let place_of_verb = if place.path[0] == "api" { 2 } else { 3 };
    place.path.insert(place_of_verb, pick(rng, &["watch", "proxy"]).to_owned());
    place
}

/// Most are the plain ones, for which objects exist.
fn name(rng: &mut Rng) -> String {
    let odd =
        ["system%3Anode%3An", "my%20role", "x%2Fstatus", "Upper", "%C3%A9", "*", "a,b", "%2E%2E", "x;y"];
    if rng.u8(..12) == 0 { pick(rng, &odd) } else { pick(rng, &NAMES) }.to_owned()
}

fn split(path: &str) -> Vec<String> {
    path.split('/').map(str::to_owned).collect()
}
