//! A request that the gate lets through is what the server takes it for.
//!
//! For each request that a client could send:
//!
//! 1. **A path that parses has the server's parts**: group, version, namespace, resource, subresource, name, as its
//!    resolver reads them; a `name` that the server takes from a field selector is the one exception, and escapes in the
//!    names of metrics are compared decoded.
//! 2. **A read is a read for the server**: a `GET` or `HEAD` with the verb `get`, `list` or `watch`, no `exec`, `attach` or
//!    `portforward`, and no upgrade that the server or what is behind it could grant; on a path that is no resource,
//!    `OPTIONS` too. Servers that clean a path, decode it twice or cut parameters off read nothing else in it, unless it is
//!    a proxy's.
//! 3. **A preset or a rule permits only what it names**: the server's reading has the verb, the group, the resource, the
//!    subresource, the namespace and the name that the exemption names. For a dry run, the server's query parser and its
//!    options decoder say that nothing is stored. No empty part of a rule is a wildcard.
//! 4. **The gate sees each upgrade that the server sees.**
//!
//! A request that the server refuses before it looks at the content changes nothing, and none of these apply.

use crate::{
    corners::Corners,
    exemptions::{self, Exemption},
    oracle::{Oracle, Reading},
    requests::Request,
    settings,
    shrink::smallest,
};
use fastrand::Rng;
use kube_leader_gate::{policy::Policy, request::RequestInfo};
use std::{collections::BTreeMap, fmt::Write as _};

const REQUESTS: usize = 100_000;
/// How many requests are made before the oracle is asked.
const BATCH: usize = 5_000;

pub fn passing_requests_are_reads_to_the_server() {
    let mut oracle = Oracle::start();
    let (seed, requests) = (settings::seed(), settings::number("ATTACK_REQUESTS").unwrap_or(REQUESTS));
    let mut rng = Rng::with_seed(seed);
    let judge = Judge::new();
    let mut corners = Corners::default();
    // The first failure of each kind.
    let mut failures: BTreeMap<String, Request> = BTreeMap::new();
    let mut made = 0;
    while made < requests {
        let batch: Vec<_> =
            std::iter::repeat_with(|| Request::random(&mut rng)).take(BATCH.min(requests - made)).collect();
        made += batch.len();
        let sent: Vec<_> = batch.iter().map(Request::build).collect();
        let readings = oracle.read(sent.iter().flatten().collect::<Vec<_>>().into_iter());
        let known = batch.iter().zip(&sent).filter_map(|(request, sent)| Some((request, sent.as_ref()?)));
        for ((request, sent), reading) in known.zip(&readings) {
            let verdict = judge.verdict(sent, reading);
            for complaint in verdict.complaints {
                failures.entry(complaint).or_insert_with(|| request.clone());
            }
            corners.count(request, sent, reading, verdict.reads, &verdict.permitted);
        }
    }
    let mut report = String::new();
    for (complaint, request) in failures {
        let still = |request: &Request| {
            let Some(sent) = request.build() else { return false };
            let reading = oracle.read_one(&sent);
            judge.verdict(&sent, &reading).complaints.contains(&complaint)
        };
        let request = smallest(request, still);
        let reading = oracle.read_one(&request.build().expect("it was sent"));
        let _ = writeln!(report, "\n{complaint}:\n  {request}\n  {reading:?}");
    }
    if requests >= REQUESTS {
        report += &corners.complaints(&judge.names[..exemptions::used().len()]);
    }
    assert!(report.is_empty(), "with ATTACK_SEED={seed}:\n{report}");
}

/// All policies at once.
struct Judge {
    policies: Vec<(Exemption, Policy)>,
    names: Vec<String>,
}

struct Verdict {
    reads: bool,
    /// The policies that permit it.
    permitted: Vec<usize>,
    complaints: Vec<String>,
}

impl Judge {
    fn new() -> Self {
        let policies: Vec<_> = exemptions::used().into_iter().chain(exemptions::idle()).collect();
        let names = policies.iter().map(ToString::to_string).collect();
        Self { policies: policies.into_iter().map(|it| (it.clone(), it.policy())).collect(), names }
    }

    fn verdict(&self, sent: &http::Request<()>, reading: &Reading) -> Verdict {
        let info = RequestInfo::of(sent);
        let mut complaints = Vec::new();
        let mut complain = |holds: bool, what: &str| {
            if !holds {
                complaints.push(what.to_owned());
            }
        };
        let answered = reading.refused.is_empty();
        if answered {
            complain(
                info.is_upgrade() || !reading.upgrade,
                "the server sees an upgrade that the gate does not see",
            );
            // The target of `CONNECT` is no path.
            if info.is_parsed() && *sent.method() != http::Method::CONNECT {
                complain(same_parts(&info, reading), "the server reads other parts");
            }
        }
        let reads = info.is_read();
        complain(!reads || !answered || reading.is_read(sent.method()), "the server's reading is no read");
        let mut permitted = Vec::new();
        if !reads {
            for (index, (exemption, policy)) in self.policies.iter().enumerate() {
                if policy.permits(&info) {
                    complain(exemption.means(reading), &format!("not meant by {exemption}"));
                    permitted.push(index);
                }
            }
        }
        Verdict { reads, permitted, complaints }
    }
}

fn same_parts(info: &RequestInfo<'_>, reading: &Reading) -> bool {
    if info.resource().is_empty() || !reading.is_resource {
        return info.resource().is_empty() != reading.is_resource;
    }
    let name = info.name().unwrap_or_default();
    let decoded = |part| percent_encoding::percent_decode_str(part).decode_utf8_lossy();
    let ours = [
        info.group(),
        info.version(),
        &info.namespace().unwrap_or_default(),
        &decoded(info.resource()),
        &decoded(info.subresource()),
    ];
    let theirs =
        [&*reading.group, &*reading.version, &*reading.namespace, &*reading.resource, &*reading.subresource];
    let selected = name.is_empty() && matches!(&*reading.verb, "list" | "watch");
    ours == theirs && (name == reading.name || selected)
}
