//! What a policy lets a follower send, and above all what it does not.

use http::{Method, Uri};
use kube_leader_gate::policy::{Exemption, Permitted, Policy, Preset, Rule};
use kube_leader_gate::request::{RequestInfo, Verb};

mod presets;
mod validity;

const NAMESPACED: &str = "/api/v1/namespaces/a";

fn permits(policy: &Policy, request: &str, upgrade: bool) -> bool {
    let (method, uri) = request.split_once(' ').unwrap();
    let uri: Uri = uri.replace('~', NAMESPACED).parse().unwrap();
    let method: Method = method.parse().unwrap();
    let info = RequestInfo::from_parts(&method, &uri, upgrade);
    assert!(!info.is_read(), "{request} is a read: the gate does not ask the policy");
    policy.permits(&info)
}

/// `~` stands for the namespace `a`.
fn check(exemption: impl Into<Exemption>, permitted: &[&str], refused: &[&str]) {
    let policy = Policy::strict().allow(exemption);
    for request in permitted {
        assert!(permits(&policy, request, false), "{policy:?} should permit {request}");
        assert!(!permits(&Policy::default(), request, false), "the strict policy permits {request}");
    }
    for request in refused {
        assert!(!permits(&policy, request, false), "{policy:?} should refuse {request}");
    }
}

#[test]
fn unset_part_of_rule_has_safe_meaning() {
    check(
        Rule::new("", "pods"),
        &["POST ~/pods", "PUT ~/pods/x", "PATCH /api/v1/pods/x", "DELETE ~/pods/x", "DELETE ~/pods"],
        &[
            "PATCH ~/pods/x/status",
            "POST ~/pods/x/exec",
            "GET ~/pods/x/exec",
            "POST ~/pods/x/proxy",
            "OPTIONS ~/pods",
            "POST ~/podtemplates",
            "POST /apis/apps/v1/namespaces/a/pods",
            "DELETE /api/v1/watch/namespaces/a/pods/x",
            "DELETE /api/v1/proxy/namespaces/a/pods/x",
        ],
    );
}

#[test]
fn each_part_narrows_the_rule() {
    check(
        Rule::new("", "pods").verbs([Verb::Create]),
        &["POST ~/pods"],
        &["PUT ~/pods/x", "DELETE ~/pods/x"],
    );
    check(
        Rule::new("", "pods").subresource("eviction"),
        &["POST ~/pods/x/eviction"],
        &["POST ~/pods", "DELETE ~/pods/x", "POST ~/pods/x/binding"],
    );
    check(
        Rule::new("", "pods").namespace("a"),
        &["POST ~/pods", "DELETE ~/pods/x"],
        &["POST /api/v1/pods", "POST /api/v1/namespaces/b/pods", "POST /api/v1/namespaces/%61/pods"],
    );
    check(
        Rule::new("", "pods").name("system:x"),
        &["PATCH ~/pods/system:x", "DELETE ~/pods/system%3Ax", "DELETE /api/v1/namespaces/b/pods/system:x"],
        &[
            "POST ~/pods",
            "POST ~/pods/system:x",
            "DELETE ~/pods",
            "DELETE ~/pods/system:y",
            "DELETE ~/pods/system%3ax",
            "DELETE ~/pods/system",
        ],
    );
    check(
        Rule::new("", "pods").subresource("proxy").verbs([Verb::Connect]).name("x"),
        &["POST ~/pods/x/proxy/metrics", "DELETE ~/pods/x/proxy/"],
        &["POST ~/pods/y/proxy", "POST ~/pods/x", "POST ~/pods/x/exec", "FOO ~/pods/x/proxy"],
    );
    check(
        Rule::new("", "namespaces").name("a").namespace("a").verbs([Verb::Delete]),
        &["DELETE /api/v1/namespaces/a"],
        &["DELETE /api/v1/namespaces/b", "DELETE ~/pods/a", "DELETE ~/pods"],
    );
}

#[test]
fn closure_judges_every_write() {
    let policy = Policy::strict().allow(Preset::Events).allow_if(|info| info.path().ends_with("/odd//path"));
    assert!(permits(&policy, "POST /odd//path", false));
    assert!(permits(&policy, "POST ~/events", false));
    assert!(!permits(&policy, "POST /even/path", false));
}

#[test]
fn adding_to_policy_does_not_change_its_clone() {
    let first = Policy::strict().allow(Preset::Events);
    let second = first.clone().allow(Preset::Exec);
    assert!(permits(&second, "GET ~/pods/web-0/exec", false));
    assert!(permits(&second, "POST ~/events", false));
    assert!(!permits(&first, "GET ~/pods/web-0/exec", false));
}

#[test]
fn debug_of_policy_shows_its_rules() {
    let policy = Policy::strict().allow(Preset::DryRun).allow_status("", "nodes").allow_if(|_| false);
    let said = format!("{policy:?}");
    for part in ["DryRun", "nodes", "status", "Patch", "Closure"] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

/// A program that translates the policy learns of each exemption, but of no invalid rule.
#[test]
fn policy_tells_what_it_permits() {
    let rule = Rule::new("", "configmaps").verbs([Verb::Patch]);
    let policy = Policy::strict().allow(Rule::new("", "")).allow(rule.clone()).allow(Preset::Events);
    let permitted: Vec<_> = policy.allow_if(|_| true).permitted().map(|it| format!("{it:?}")).collect();
    let expected = [Permitted::Rule(&rule), Permitted::Preset(Preset::Events), Permitted::Closure];
    assert_eq!(permitted, expected.map(|it| format!("{it:?}")));
}
