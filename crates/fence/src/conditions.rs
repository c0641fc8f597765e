//! Which requests a fence judges, as match conditions in CEL.

use crate::{cel, error::refuse, writers::Writers};
use k8s_openapi::api::admissionregistration::v1::MatchCondition;
use kube_leader_gate::{
    ErrInvalid,
    policy::{Permitted, Policy, PresetRule, Rule},
    request::Verb,
};

/// Kubernetes' limit for the match conditions of a policy.
const MOST: usize = 64;

/// The group and the resource that elections write. Followers must be able to write it.
pub(crate) const COORDINATION: &str = "coordination.k8s.io";
pub(crate) const LEASES: &str = "leases";

/// The name of the Lease that a probe asks to create, and that the fence never lets pass.
pub(crate) const PROBE: &str = "kube-leader-gate.fence-probe";

/// Whether the request is a probe. No exemption holds for it.
pub(crate) fn is_probe() -> String {
    cel::all(&[
        cel::one_of("request.resource.group", &[COORDINATION]),
        cel::one_of("request.resource.resource", &[LEASES]),
        cel::one_of("request.operation", &["CREATE"]),
        cel::part_is("name", PROBE),
    ])
}

/// The conditions under which the fence judges a request. It judges a request that meets all of them.
pub(crate) fn of(writers: &Writers, policy: &Policy) -> Result<Vec<MatchCondition>, ErrInvalid> {
    let condition = |name: String, expression: String| MatchCondition { name, expression };
    let mut conditions = vec![
        condition("is-from-a-replica".into(), writers.condition()),
        condition("is-not-of-an-election".into(), unless_probe(&elections())),
    ];
    let mut rules = 0;
    for permitted in policy.permitted() {
        let (name, exempt) = match permitted {
            Permitted::Preset(preset) => {
                let exempt: Vec<_> = preset.rules().iter().map(of_preset_rule).collect();
                (format!("is-not-of-{preset}"), any(&exempt))
            }
            Permitted::Rule(rule) => {
                rules += 1;
                (format!("is-not-of-rule-{rules}"), of_rule(rule))
            }
            Permitted::Closure => {
                let allowed = "rules and presets: the API server cannot run a closure of this process";
                return refuse("policy's exemption", "allow_if", allowed);
            }
        };
        let exempt = unless_probe(&exempt);
        if !conditions.iter().any(|condition| condition.expression == exempt) {
            conditions.push(condition(name, exempt));
        }
    }
    if conditions.len() > MOST {
        let allowed = "62 exemptions at most, since the API server allows 64 match conditions; use rules for more \
                       verbs at once, or presets";
        return refuse("number of exemptions", &(conditions.len() - 2).to_string(), allowed);
    }
    Ok(conditions)
}

fn unless_probe(exempt: &str) -> String {
    format!("({}) || !({exempt})", is_probe())
}

fn elections() -> String {
    cel::all(&[
        cel::one_of("request.resource.group", &[COORDINATION]),
        cel::one_of("request.resource.resource", &[LEASES]),
    ])
}

fn of_preset_rule(rule: &PresetRule) -> String {
    let mut parts = Vec::new();
    if !rule.groups.is_empty() {
        parts.push(cel::one_of("request.resource.group", rule.groups));
    }
    if !rule.resources.is_empty() {
        parts.push(cel::one_of("request.resource.resource", rule.resources));
    }
    parts.push(cel::subresource_is_one_of(rule.subresources));
    parts.push(operations(rule.verbs, true));
    if rule.dry_run {
        parts.push("has(request.dryRun) && request.dryRun".to_owned());
    }
    cel::all(&parts)
}

fn of_rule(rule: &Rule) -> String {
    let subresource = rule.subresource.as_deref().unwrap_or_default();
    let mut parts = vec![
        cel::one_of("request.resource.group", &[&rule.group]),
        cel::one_of("request.resource.resource", &[&rule.resource]),
        cel::subresource_is_one_of(&[subresource]),
        operations(&rule.verbs, subresource.is_empty()),
    ];
    // Admission sees no namespace in a request about a namespace.
    let namespace = rule.namespace.as_deref();
    let part = if (&*rule.group, &*rule.resource) == ("", "namespaces") { "name" } else { "namespace" };
    parts.extend(namespace.map(|namespace| cel::part_is(part, namespace)));
    parts.extend(rule.name.as_deref().map(|name| cel::part_is("name", name)));
    cel::all(&parts)
}

/// Whether the request does one of these.
///
/// Admission does not tell `update` from `patch`, nor `delete` from `deletecollection`. On an object itself (`whole`), both
/// `update` and `patch` may create what they name, and admission then sees a creation like any other.
fn operations(verbs: &[Verb], whole: bool) -> String {
    let has = |any: &[Verb]| verbs.iter().any(|verb| any.contains(verb));
    let updates = has(&[Verb::Update, Verb::Patch]);
    let operations = [
        ("CREATE", has(&[Verb::Create]) || updates && whole),
        ("UPDATE", updates),
        ("DELETE", has(&[Verb::Delete, Verb::DeleteCollection])),
        ("CONNECT", has(&[Verb::Connect])),
    ];
    let operations: Vec<_> = operations.into_iter().filter(|(_, does)| *does).collect();
    let names: Vec<_> = operations.iter().map(|(name, _)| name).collect();
    cel::one_of("request.operation", &names)
}

fn any(alternatives: &[String]) -> String {
    match alternatives {
        [only] => only.clone(),
        _ => alternatives.iter().map(|it| format!("({it})")).collect::<Vec<_>>().join(" || "),
    }
}
