//! The meaning of each preset and each rule, in terms of the server's own reading.
//!
//! This file does not use the crate's reading of a request.

use crate::oracle::Reading;
use kube_leader_gate::{
    policy::{Policy, Preset, Rule},
    request::Verb,
};
use std::fmt;

/// One piece of a policy.
#[derive(Clone, Debug)]
pub enum Exemption {
    Preset(Preset),
    Shape(Shape),
}

/// A rule, part by part.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub group: &'static str,
    pub resource: &'static str,
    pub subresource: &'static str,
    pub verbs: &'static [Verb],
    pub namespace: Option<&'static str>,
    pub name: Option<&'static str>,
}

const PRESETS: [Preset; 6] = [
    Preset::AccessReviews,
    Preset::TokenReviews,
    Preset::TokenRequests,
    Preset::Events,
    Preset::DryRun,
    Preset::Exec,
];

const MUTATIONS: &[Verb] = &[Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection];
const STATUS: &[Verb] = &[Verb::Update, Verb::Patch];
const CONNECT: &[Verb] = &[Verb::Connect];

const fn shape(group: &'static str, resource: &'static str) -> Shape {
    Shape { group, resource, subresource: "", verbs: MUTATIONS, namespace: None, name: None }
}

/// One rule of each shape: verbs, subresource, namespace, name, status, connection and proxy, with and without a
/// built-in group.
const SHAPES: [Shape; 21] = [
    shape("", "configmaps"),
    shape("apps", "deployments"),
    shape("example.com", "widgets"),
    shape("agg.example.com", "things"),
    shape("", "namespaces"),
    Shape { verbs: &[Verb::Create], ..shape("", "pods") },
    Shape { verbs: &[Verb::Delete], ..shape("", "configmaps") },
    Shape { verbs: &[Verb::DeleteCollection], ..shape("", "events") },
    Shape { subresource: "status", verbs: STATUS, ..shape("", "pods") },
    Shape { subresource: "status", verbs: STATUS, ..shape("example.com", "widgets") },
    Shape { subresource: "scale", ..shape("apps", "deployments") },
    Shape { subresource: "eviction", ..shape("", "pods") },
    Shape { subresource: "finalize", verbs: &[Verb::Update], ..shape("", "namespaces") },
    Shape { subresource: "start", ..shape("agg.example.com", "things") },
    Shape { namespace: Some("a"), ..shape("", "configmaps") },
    Shape { namespace: Some("a"), name: Some("x"), ..shape("", "pods") },
    Shape { name: Some("system:node:n"), ..shape("rbac.authorization.k8s.io", "clusterroles") },
    Shape { namespace: Some("a"), name: Some("a"), ..shape("", "namespaces") },
    Shape { verbs: CONNECT, ..shape("agg.example.com", "things") },
    Shape { subresource: "proxy", verbs: CONNECT, name: Some("x"), ..shape("", "pods") },
    Shape { subresource: "exec", verbs: CONNECT, ..shape("agg.example.com", "things") },
];

/// Rules that permit nothing: with empty parts, as from an unset variable; for reads, which pass without a rule; for
/// mutations of a connection; for connections that do not exist.
const IDLE: [Shape; 7] = [
    Shape { name: Some(""), ..shape("", "configmaps") },
    Shape { namespace: Some(""), ..shape("", "pods") },
    Shape { namespace: Some(""), ..shape("", "namespaces") },
    Shape { verbs: &[Verb::Unknown, Verb::Patch], ..shape("", "") },
    Shape { verbs: &[Verb::Get, Verb::List, Verb::Watch], ..shape("agg.example.com", "things") },
    Shape { subresource: "attach", ..shape("", "pods") },
    Shape { verbs: CONNECT, ..shape("", "configmaps") },
];

/// The rules that permit something.
pub fn used() -> Vec<Exemption> {
    PRESETS.into_iter().map(Exemption::Preset).chain(SHAPES.into_iter().map(Exemption::Shape)).collect()
}

/// The rules that permit nothing.
pub fn idle() -> Vec<Exemption> {
    IDLE.into_iter().map(Exemption::Shape).collect()
}

// === impl Exemption ===

impl Exemption {
    /// The policy with only this exemption.
    pub fn policy(&self) -> Policy {
        match self {
            Self::Preset(preset) => Policy::strict().allow(*preset),
            Self::Shape(shape) => Policy::strict().allow(shape.rule()),
        }
    }

    pub fn is_about(&self, resource: &str) -> bool {
        matches!(self, Self::Shape(shape) if shape.resource == resource)
    }

    /// Whether the exemption covers a request that the server reads like this.
    pub fn means(&self, reading: &Reading) -> bool {
        // A request that the server itself refuses changes nothing.
        if !reading.refused.is_empty() {
            return true;
        }
        // Nothing follows the subresource, so every reader of the path reads the same.
        let one_reading = reading.subresource == "proxy"
            || reading.parts <= 3
                && reading.others.iter().all(|other| {
                    (&*other.group, &*other.namespace, &*other.resource, &*other.subresource)
                        == (&*reading.group, &*reading.namespace, &*reading.resource, &*reading.subresource)
                });
        reading.is_resource
            && one_reading
            && match self {
                Self::Preset(preset) => preset_means(*preset, reading),
                Self::Shape(shape) => shape.means(reading),
            }
    }
}

/// As the documentation of each preset says.
fn preset_means(preset: Preset, reading: &Reading) -> bool {
    let target = (&*reading.group, &*reading.resource, &*reading.subresource);
    let is = |verbs: &[Verb]| verbs.iter().any(|verb| is_verb(reading, *verb));
    match preset {
        Preset::AccessReviews => {
            is(&[Verb::Create])
                && matches!(
                    target,
                    (
                        "authorization.k8s.io",
                        "subjectaccessreviews"
                            | "localsubjectaccessreviews"
                            | "selfsubjectaccessreviews"
                            | "selfsubjectrulesreviews",
                        ""
                    ) | ("authentication.k8s.io", "selfsubjectreviews", "")
                )
        }
        Preset::TokenReviews => {
            is(&[Verb::Create]) && target == ("authentication.k8s.io", "tokenreviews", "")
        }
        Preset::TokenRequests => is(&[Verb::Create]) && target == ("", "serviceaccounts", "token"),
        Preset::Events => {
            is(&[Verb::Create, Verb::Update, Verb::Patch])
                && matches!(target, ("" | "events.k8s.io", "events", ""))
        }
        Preset::DryRun => {
            is(&[Verb::Create, Verb::Update, Verb::Patch])
                && matches!(target.2, "" | "status" | "scale")
                // Options that the server refuses change nothing either.
                && (reading.dry_run || !reading.options_error.is_empty())
        }
        Preset::Exec => is(CONNECT) && matches!(target, ("", "pods", "exec" | "attach" | "portforward")),
        other => panic!("what does {other:?} mean?"),
    }
}

/// Whether the server's verb is this one, and not over a connection. `connect` covers any method through a proxy,
/// `GET` and `POST` of the other connections, and elsewhere a `GET` or `HEAD` that may become a connection.
fn is_verb(reading: &Reading, verb: Verb) -> bool {
    let is_get = matches!(&*reading.verb, "get" | "list" | "watch");
    match (verb, &*reading.subresource) {
        (Verb::Connect, "proxy") => reading.verb != "proxy",
        (Verb::Connect, _) if reading.is_connection() => matches!(&*reading.verb, "get" | "create"),
        (Verb::Connect, _) => is_get && reading.upgrade,
        (verb, _) => reading.verb == verb.as_str() && !reading.is_connection() && !reading.grants_upgrade(),
    }
}

impl fmt::Display for Exemption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Preset(preset) => write!(f, "Preset::{preset:?}"),
            Self::Shape(Shape { group, resource, subresource, verbs, namespace, name }) => {
                write!(f, "a rule for {verbs:?} on {:?}", (group, resource, subresource))?;
                namespace.iter().try_for_each(|it| write!(f, " in {it:?}"))?;
                name.iter().try_for_each(|it| write!(f, " named {it:?}"))
            }
        }
    }
}

// === impl Shape ===

impl Shape {
    pub fn rule(&self) -> Rule {
        let mut rule = Rule::new(self.group, self.resource).verbs(self.verbs.iter().copied());
        if !self.subresource.is_empty() {
            rule = rule.subresource(self.subresource);
        }
        if let Some(namespace) = self.namespace {
            rule = rule.namespace(namespace);
        }
        if let Some(name) = self.name {
            rule = rule.name(name);
        }
        rule
    }

    fn means(&self, reading: &Reading) -> bool {
        let part = |wanted: Option<&str>, there: &str| {
            wanted.is_none_or(|wanted| !wanted.is_empty() && wanted == there)
        };
        !self.resource.is_empty()
            && (self.group, self.resource, self.subresource)
                == (&*reading.group, &*reading.resource, &*reading.subresource)
            && part(self.namespace, &reading.namespace)
            && part(self.name, &reading.name)
            && self.verbs.iter().any(|verb| is_verb(reading, *verb))
    }
}
