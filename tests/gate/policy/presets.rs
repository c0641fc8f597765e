//! What each preset permits, and the most similar requests that it does not permit.

use super::{check, permits};
use kube_leader_gate::policy::{Policy, Preset, Rule};
use kube_leader_gate::request::Verb;

#[test]
fn access_reviews_preset_permits_only_access_reviews() {
    check(
        Preset::AccessReviews,
        &[
            "POST /apis/authorization.k8s.io/v1/subjectaccessreviews",
            "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
            "POST /apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews",
            "POST /apis/authentication.k8s.io/v1/selfsubjectreviews",
        ],
        &[
            "POST /apis/authentication.k8s.io/v1/tokenreviews",
            "POST /apis/authentication.k8s.io/v1/subjectaccessreviews",
            "POST /apis/authorization.k8s.io/v1/selfsubjectreviews",
            "POST /api/v1/subjectaccessreviews",
            "POST /apis/authorization.k8s.io.example.com/v1/subjectaccessreviews",
            "PUT /apis/authorization.k8s.io/v1/subjectaccessreviews/x",
            "POST /apis/authorization.k8s.io/v1/subjectaccessreviews/x/status",
            "POST /apis/authorization.k8s.io/v1/subjectaccessreview%73",
            "POST /apis/authorization%2Ek8s.io/v1/subjectaccessreviews",
            "POST /apis/authorization.k8s.io/v1/subjectaccessreviews/",
            "POST //apis/authorization.k8s.io/v1/subjectaccessreviews",
            "POST /apis/authorization.k8s.io/v1/watch/subjectaccessreviews",
            "POST /apis/authorization.k8s.io/v1/proxy/subjectaccessreviews",
            "post /apis/authorization.k8s.io/v1/subjectaccessreviews",
        ],
    );
}

#[test]
fn token_reviews_preset_permits_only_token_reviews() {
    check(
        Preset::TokenReviews,
        &["POST /apis/authentication.k8s.io/v1/tokenreviews"],
        &[
            "POST /apis/authentication.k8s.io/v1/selfsubjectreviews",
            "POST /apis/authorization.k8s.io/v1/tokenreviews",
            "DELETE /apis/authentication.k8s.io/v1/tokenreviews",
        ],
    );
}

#[test]
fn token_requests_preset_permits_only_token_requests() {
    check(
        Preset::TokenRequests,
        &["POST ~/serviceaccounts/robot/token"],
        &[
            "POST ~/serviceaccounts",
            "PUT ~/serviceaccounts/robot/token",
            "POST ~/secrets/robot/token",
            "POST /apis/example.com/v1/namespaces/a/serviceaccounts/robot/token",
            "POST ~/serviceaccounts/robot%2Ftoken",
            "POST ~/serviceaccounts/robot/token/x",
        ],
    );
}

#[test]
fn events_preset_permits_only_event_writes() {
    check(
        Preset::Events,
        &[
            "POST ~/events",
            "PATCH ~/events/web.17a",
            "PUT ~/events/web.17a",
            "POST /apis/events.k8s.io/v1/namespaces/a/events",
            "PATCH /apis/events.k8s.io/v1/namespaces/a/events/web%3A17a",
        ],
        &[
            "DELETE ~/events/web.17a",
            "DELETE ~/events",
            "POST /apis/example.com/v1/namespaces/a/events",
            "POST /apis/events/v1/namespaces/a/events",
            "POST ~/pods",
            "POST ~/even%74s",
            "POST ~/Events",
            "POST ~/events;x",
            "POST ~/pods/../events",
            "POST ~/events/web.17a/status",
            "POST ~/events/web.17a/status/x",
            "POST /api/v1/watch/namespaces/a/events",
            "PATCH /events",
        ],
    );
}

/// The server ignores the upgrade where it answers by itself. An aggregated API may grant it, and may carry the write
/// out.
#[test]
fn write_with_upgrade_is_judged_by_its_method() {
    let policy = Policy::strict()
        .allow(Preset::Events)
        .allow(Preset::DryRun)
        .allow(Rule::new("", "configmaps").verbs([Verb::Patch]))
        .allow(Rule::new("example.com", "things").verbs([Verb::Create, Verb::Connect]));
    for request in ["POST ~/events", "PATCH ~/configmaps/x", "POST ~/pods?dryRun=All"] {
        assert!(permits(&policy, request, true), "{request}");
    }
    assert!(permits(&policy, "POST /apis/example.com/v1/things", false));
    assert!(permits(&policy, "GET /apis/example.com/v1/things/x", true));
    for request in [
        "POST ~/configmaps",
        "DELETE ~/configmaps/x",
        "POST /apis/example.com/v1/things",
        "PUT /apis/example.com/v1/things/x",
        "DELETE /apis/example.com/v1/things/x",
        "POST /apis/example.com/v1/widgets?dryRun=All",
        "OPTIONS /apis/example.com/v1/things/x",
    ] {
        assert!(!permits(&policy, request, true), "{request}");
    }
}

#[test]
fn dry_runs_preset_permits_only_dry_runs() {
    check(
        Preset::DryRun,
        &[
            "POST ~/pods?dryRun=All",
            "PUT ~/pods/web-0?dryRun=All&fieldManager=x",
            "PATCH ~/pods/web-0/status?dryRun=All",
            "PUT /apis/apps/v1/namespaces/a/deployments/web/scale?dryRun=All",
            "POST ~/pods?dryRun=All&dryRun=All",
            // In kube's spelling.
            "POST ~/pods?&dryRun=All&fieldManager=a%20b+c",
            "PATCH ~/pods/x?pretty=&timeout=32s&force=true&fieldValidation=Strict&fieldManager=x&dryRun=All",
        ],
        &[
            "POST ~/pods",
            "POST ~/pods?dryRun",
            "POST ~/pods?dryRun=",
            "POST ~/pods?dryRun=all",
            "POST ~/pods?dryrun=All",
            "POST ~/pods?dryRun=All&dryRun=",
            "POST ~/pods?dryRun=All&dryRun=None",
            "POST ~/pods?dryRun=None&dryRun=All",
            "POST ~/pods?dryRun=All,All",
            "POST ~/pods?dryRun=All+",
            "POST ~/pods?dryRun=All%00",
            "POST ~/pods?x=dryRun=All",
            "POST ~/pods?dryRun=All;",
            "POST ~/pods?x;dryRun=All",
            "POST ~/pods?dryRun=All&x=%zz",
            "POST ~/pods?x=%3FdryRun=All",
            // In spellings that no client uses.
            "POST ~/pods?dry%52un=All",
            "POST ~/pods?dryRun=%41ll",
            "POST ~/pods?dryRun=All&DryRun=None",
            "POST ~/pods?dryRun=All&dryrun=All",
            "POST ~/pods?dryRun[]=All&dryRun=All",
            "POST ~/pods?dryRun=All&pretty",
            "POST ~/pods?dryRun=All&a=b=c",
            "POST ~/pods?dryRun=All&=x",
            "POST ~/pods?dryRun=All&a=%1",
            "POST ~/pods?dryRun=All?",
            "POST ~/pods?dryRun=All&",
            "POST ~/pods?dryRun=All&&a=b",
            "POST ~/pods?&&dryRun=All",
            "POST ~/pods?dryRun=All&1=&2=&3=&4=&5=&6=&7=&8=",
            // Its options are read from the body.
            "DELETE ~/pods/web-0?dryRun=All",
            "DELETE ~/pods?dryRun=All",
            // The query belongs to the backend.
            "POST ~/services/x/proxy?dryRun=All",
            "POST ~/services/x/proxy/a?dryRun=All",
            "POST /api/v1/proxy/namespaces/a/services/x?dryRun=All",
            "POST ~/pods/web-0/exec?dryRun=All",
            "GET ~/pods/web-0/exec?dryRun=All",
            // A custom action of some API.
            "PUT /apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachines/x/start?dryRun=All",
            "POST /api/v1/watch/namespaces/a/pods?dryRun=All",
            "PATCH /healthz?dryRun=All",
            "POST ~/p%6Fds?dryRun=All",
        ],
    );
}

/// Go ignores a query with more than 10,000 pairs, so the server would carry the write out.
#[test]
fn query_with_excess_pairs_is_no_dry_run() {
    let policy = Policy::strict().allow(Preset::DryRun);
    for pair in ["&", "&x", "&x=1", "&%00=", "&="] {
        for count in [8, 9_999, 10_000, 10_001] {
            for query in
                [format!("dryRun=All{}", pair.repeat(count)), format!("{}&dryRun=All", pair.repeat(count))]
            {
                let request = format!("POST ~/pods?{query}");
                assert!(!permits(&policy, &request, false), "{count} of {pair}");
            }
        }
    }
    let longest = 512 - "dryRun=All&fieldManager=".len();
    for (length, permitted) in [(longest, true), (longest + 1, false)] {
        let request = format!("POST ~/pods?dryRun=All&fieldManager={}", "x".repeat(length));
        assert_eq!(permits(&policy, &request, false), permitted, "{length}");
    }
}

/// The requests that kube itself makes. A build of the gate alone has no kube.
#[cfg(feature = "election")]
#[test]
fn dry_run_of_kube_is_one() {
    use kube::core::{
        Request,
        params::{Patch, PatchParams, PostParams},
    };
    use kube_leader_gate::request::RequestInfo;

    let policy = Policy::strict().allow(Preset::DryRun);
    let request = Request::new("/api/v1/namespaces/a/pods");
    let post = PostParams { dry_run: true, field_manager: Some("a/b c".to_owned()) };
    let apply = PatchParams {
        dry_run: true,
        ..PatchParams::apply("é".repeat(64).as_str()).force().validation_strict()
    };
    for request in [
        request.create(&post, Vec::new()).unwrap(),
        request.replace("x", &post, Vec::new()).unwrap(),
        request.patch("x", &apply, &Patch::Apply(serde_json::json!({}))).unwrap(),
        request.patch_subresource("status", "x", &apply, &Patch::Apply(serde_json::json!({}))).unwrap(),
    ] {
        assert!(policy.permits(&RequestInfo::of(&request)), "{}", request.uri());
    }
}

#[test]
fn exec_preset_permits_only_connections() {
    check(
        Preset::Exec,
        &["GET ~/pods/web-0/exec?command=ls", "POST ~/pods/web-0/attach", "GET ~/pods/web-0/portforward"],
        &[
            "POST ~/pods/web-0/proxy",
            "POST ~/pods/web-0/ephemeralcontainers",
            "GET ~/widgets/x/exec",
            "GET /apis/example.com/v1/namespaces/a/pods/web-0/exec",
            "GET ~/pods/web-0/%65xec",
            "GET ~/pods/web-0/exec/",
            "GET ~/pods/web-0/exec/x",
            "GET /api/v1/watch/namespaces/a/pods/web-0/exec",
            "EXEC ~/pods/web-0/exec",
            "HEAD ~/pods/web-0/exec",
            "PUT ~/pods/web-0/exec",
            "PATCH ~/pods/web-0/exec",
            "DELETE ~/pods/web-0/exec",
            "OPTIONS ~/pods/web-0/exec",
            "GET ~/pods/web%200/exec",
            "GET ~/pods/web-0/Exec",
        ],
    );
    let policy = Policy::strict().allow(Preset::Exec);
    assert!(permits(&policy, "GET ~/pods/web-0/exec", true));
    assert!(!permits(&policy, "GET /apis/example.com/v1/pods/web-0", true));
}

#[test]
fn status_rule_permits_only_status_writes() {
    let policy = Policy::strict().allow_status("example.com", "probes").allow_status("", "nodes");
    let probe = "/apis/example.com/v1/namespaces/a/probes/p";
    for request in [format!("PUT {probe}/status"), format!("PATCH {probe}/status")] {
        assert!(permits(&policy, &request, false), "{request}");
    }
    assert!(permits(&policy, "PATCH /api/v1/nodes/n/status", false));
    for request in [
        format!("PATCH {probe}"),
        format!("PUT {probe}/scale"),
        format!("DELETE {probe}/status"),
        format!("POST {probe}/status"),
        format!("PATCH {probe}/statu%73"),
        format!("PATCH {probe}/status/"),
        format!("PATCH {probe}/status/x"),
        format!("PATCH {probe}%2Fstatus"),
        "PATCH /apis/other.com/v1/namespaces/a/probes/p/status".to_owned(),
        "PATCH /api/v1/namespaces/n/status".to_owned(),
    ] {
        assert!(!permits(&policy, &request, false), "{request}");
    }
}
