//! Where gate and fence may differ, and why.

use http::Method;
use kube_leader_gate::request::{RequestInfo, Verb};

/// How the two verdicts differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdicts {
    OnlyTheGateRefuses,
    OnlyTheFenceRefuses,
}

/// A reason for a difference, and the requests that it holds for.
#[derive(Debug)]
pub struct Reason {
    pub why: &'static str,
    verdicts: Verdicts,
    about: fn(&RequestInfo<'_>) -> bool,
}

/// The differences that there are. Any other difference fails the test.
pub const REASONS: &[Reason] = &[
    Reason {
        why: "leases are exempt: candidates write them before they lead",
        verdicts: Verdicts::OnlyTheGateRefuses,
        about: |it| it.group() == "coordination.k8s.io" && it.resource() == "leases",
    },
    Reason {
        why: "the API server shows reviews to no policy; they change nothing",
        verdicts: Verdicts::OnlyTheGateRefuses,
        about: |it| {
            ["authentication.k8s.io", "authorization.k8s.io"].contains(&it.group())
                && it.resource().ends_with("reviews")
                && it.verb() == Verb::Create
        },
    },
    Reason {
        why: "the API server shows policies and webhooks to no policy, so that a bad one can be removed",
        verdicts: Verdicts::OnlyTheGateRefuses,
        about: |it| it.group() == "admissionregistration.k8s.io",
    },
    Reason {
        why: "admission does not see the method of a connection, so it refuses reads through a proxy too",
        verdicts: Verdicts::OnlyTheFenceRefuses,
        about: |it| {
            it.subresource() == "proxy"
                && [Method::GET, Method::HEAD].contains(it.method())
                && !it.is_upgrade()
        },
    },
    Reason {
        why: "the gate exempts no odd spelling and no legacy prefix; the API server knows what the request means",
        verdicts: Verdicts::OnlyTheGateRefuses,
        about: |it| !it.is_parsed() || it.path().contains("/watch/"),
    },
    Reason {
        why: "admission does not tell update from patch, and either may create an object that it names",
        verdicts: Verdicts::OnlyTheGateRefuses,
        about: |it| {
            it.group().is_empty()
                && it.subresource().is_empty()
                && ["configmaps", "secrets"].contains(&it.resource())
                && [Verb::Create, Verb::Update, Verb::Patch].contains(&it.verb())
        },
    },
];

impl Reason {
    pub fn explains(&self, verdicts: Verdicts, info: &RequestInfo<'_>) -> bool {
        self.verdicts == verdicts && (self.about)(info)
    }
}
