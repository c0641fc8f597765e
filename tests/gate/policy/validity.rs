//! Rules that cannot match what they name: they are refused with the reason. Where a rule is not checked, it permits
//! nothing.

use super::permits;
use kube_leader_gate::policy::{Policy, Preset, Rule};
use kube_leader_gate::request::Verb;

/// The rule, why it is refused, and requests that it must not permit although its parts seem to match.
fn invalid() -> Vec<(Rule, &'static str, &'static [&'static str])> {
    let pods = || Rule::new("", "pods");
    let things = || Rule::new("example.com", "things");
    let mut rules: Vec<(Rule, &str, &[&str])> = vec![
        (Rule::new("apps/v1", "deployments"), r#"the group is "apps/v1""#, &[]),
        (Rule::new("Apps", "deployments"), r#"the group is "Apps""#, &[]),
        (Rule::new(".apps", "deployments"), r#"the group is ".apps""#, &[]),
        // The name of the core group in a manifest and in a kubebuilder marker.
        (Rule::new("v1", "pods"), r#"the group is "v1""#, &["POST ~/pods", "POST /apis/v1/v1/pods"]),
        (Rule::new("core", "pods"), r#"the group is "core""#, &["POST ~/pods"]),
        (Rule::new("apps", "Deployment"), r#"the resource is "Deployment""#, &[]),
        (Rule::new("apps", "deployments/status"), r#"the resource is "deployments/status""#, &[]),
        // As errors and metrics spell it.
        (
            Rule::new("", "deployments.apps"),
            r#""deployments.apps", allowed: the plural alone, and the group before it: Rule::new("apps", "deployments")"#,
            &["POST /apis/apps/v1/namespaces/a/deployments"],
        ),
        (Rule::new("apps", "*"), r#"the resource is "*""#, &["POST /apis/apps/v1/deployments"]),
        (
            Rule::new("", "").verbs([Verb::Patch]),
            r#"the resource is """#,
            &["PATCH /healthz", "PATCH /%61pi", "PATCH ~/pods/x"],
        ),
        (Rule::new("", "watch"), r#"the resource is "watch""#, &["DELETE /api/v1/watch/pods"]),
        (Rule::new("", "proxy"), r#"the resource is "proxy""#, &["POST /api/v1/proxy/pods/x"]),
        (pods().subresource(""), r#"the subresource is """#, &["POST ~/pods", "DELETE ~/pods/x"]),
        (pods().subresource("/status"), r#"the subresource is "/status""#, &["PATCH ~/pods/x/status"]),
        (pods().namespace(""), r#"the namespace is """#, &["POST /api/v1/pods", "POST ~/pods"]),
        (pods().namespace("a.b"), r#"the namespace is "a.b""#, &["POST /api/v1/namespaces/a.b/pods"]),
        (pods().namespace("A"), r#"the namespace is "A""#, &["POST /api/v1/namespaces/A/pods"]),
        (pods().namespace("-a"), r#"the namespace is "-a""#, &["POST /api/v1/namespaces/-a/pods"]),
        (pods().namespace("*"), r#"the namespace is "*""#, &["POST ~/pods", "POST /api/v1/pods"]),
        (pods().name(""), r#"the name is """#, &["POST ~/pods", "DELETE ~/pods", "DELETE ~/pods/x"]),
        (pods().name("."), r#"the name is ".""#, &["DELETE ~/pods/."]),
        (pods().name(".."), r#"the name is "..""#, &["DELETE ~/pods/..", "DELETE ~/pods/%2E%2E"]),
        (pods().name("a/b"), r#"the name is "a/b""#, &["DELETE ~/pods/a/b", "DELETE ~/pods/a%2Fb"]),
        (pods().name("a%2Fb"), r#"the name is "a%2Fb""#, &["DELETE ~/pods/a%2Fb", "DELETE ~/pods/a%252Fb"]),
        (pods().name("a b"), r#"the name is "a b""#, &["DELETE ~/pods/a%20b", "DELETE ~/pods/a+b"]),
        (
            Rule::new("", "namespaces").namespace("a").name("b"),
            r#"the name is "b""#,
            &["DELETE /api/v1/namespaces/a", "DELETE /api/v1/namespaces/b"],
        ),
        (
            pods().name("x").verbs([Verb::Create, Verb::DeleteCollection]),
            r#""create, deletecollection", allowed: a verb on one object, as "patch": neither create nor"#,
            &["POST ~/pods", "DELETE ~/pods", "POST ~/pods/x"],
        ),
        (
            Rule::new("", "namespaces").namespace("a").verbs([Verb::Create]),
            r#"the list of verbs is "create""#,
            &["POST /api/v1/namespaces"],
        ),
        (
            pods().subresource("status").verbs([Verb::DeleteCollection]),
            r#""deletecollection", allowed: a verb on one object: a subresource has no collection"#,
            &["DELETE ~/pods/x/status"],
        ),
        (
            pods().subresource("exec"),
            "allowed: connect, the only verb of this subresource",
            &["POST ~/pods/x/exec", "GET ~/pods/x/exec", "DELETE ~/pods/x/exec"],
        ),
        (things().subresource("proxy").verbs([Verb::Patch]), "allowed: connect", &[]),
        (pods().verbs([]), r#"the list of verbs is "", allowed: at least one"#, &["POST ~/pods"]),
        (
            pods().verbs([Verb::Create, Verb::Connect]),
            r#"the verb is "connect""#,
            &["POST ~/pods", "GET ~/pods/x/exec"],
        ),
        (
            Rule::new("", "services").subresource("exec").verbs([Verb::Connect]),
            r#"the verb is "connect", allowed: in the built-in groups, only on exec, attach, portforward and proxy"#,
            &["POST ~/services/x/exec"],
        ),
        (
            Rule::new("apps", "deployments").subresource("proxy").verbs([Verb::Connect]),
            r#"the verb is "connect""#,
            &["POST /apis/apps/v1/namespaces/a/deployments/x/proxy"],
        ),
    ];
    let never =
        [Verb::Get, Verb::List, Verb::Watch, Verb::Proxy, Verb::Head, Verb::Options, Verb::Post, Verb::Put];
    rules.extend(
        never.map(|verb| (things().verbs([Verb::Patch, verb]), "reads pass without a rule", &[][..])),
    );
    rules.push((
        things().verbs([Verb::Unknown]),
        r#"the verb is "unknown""#,
        &["X /apis/example.com/v1/things/x", "PATCH /apis/example.com/v1/things%2Fx"],
    ));
    rules
}

#[test]
fn rule_without_possible_match_is_refused() {
    for (rule, reason, _) in invalid() {
        let policy = Policy::strict().allow(Preset::Events).allow(rule.clone());
        let error = policy.validate().unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains(", allowed: "), "{error}, not {reason}");
        assert!(error.ends_with(&format!("permits nothing: {rule}")), "{error}");
    }
}

#[test]
fn rule_without_possible_match_permits_nothing() {
    let mut asked = 0;
    for (rule, _, requests) in invalid() {
        let policy = Policy::strict().allow(rule.clone());
        for request in requests {
            assert!(!permits(&policy, request, false), "{rule} permits {request}");
            asked += 1;
        }
        // A valid rule beside it still counts.
        assert!(permits(&policy.allow(Preset::Events), "POST ~/events", false), "{rule}");
    }
    assert!(asked > 40, "{asked}");
}

#[test]
fn rule_with_possible_match_is_accepted() {
    let pods = || Rule::new("", "pods");
    for rule in [
        pods(),
        pods().namespace("a").name("system:x-1_y.z@$"),
        pods().namespace("x".repeat(63)),
        pods().name("x").verbs([Verb::Create, Verb::Patch, Verb::Patch]),
        pods().namespace("a").verbs([Verb::Create]),
        pods().namespace("a").verbs([Verb::DeleteCollection]),
        Rule::new("", "namespaces").verbs([Verb::Create]),
        pods().subresource("eviction").name("x").verbs([Verb::Create]),
        pods().subresource("exec").name("x").verbs([Verb::Connect, Verb::Delete]),
        Rule::new("", "namespaces").namespace("a").verbs([Verb::Delete]),
        Rule::new("", "nodes").subresource("proxy").verbs([Verb::Connect]),
        Rule::new("subresources.kubevirt.io", "virtualmachineinstances")
            .subresource("vnc")
            .verbs([Verb::Connect]),
        Rule::new("example.com", "things").verbs([Verb::Connect]),
        Rule::new("metrics.example.com", "requests_per_second"),
    ] {
        Policy::strict().allow(rule).validate().unwrap();
    }
    let rest = Policy::strict().allow(Preset::Exec).allow_status("", "nodes").allow_if(|_| true);
    rest.validate().unwrap();
}

#[test]
fn rule_displays_in_plain_words() {
    let rule = Rule::new("example.com", "probes")
        .verbs([Verb::Update, Verb::Patch])
        .subresource("status")
        .namespace("a")
        .name("b");
    assert_eq!(
        rule.to_string(),
        r#"update, patch of "probes.example.com/status" in namespace "a" with the name "b""#
    );
}
