//! The classification agrees with Kubernetes' own; see `tests/data/README.md`.

use http::header::{CONNECTION, UPGRADE};
use http::{Method, Request, Uri};
use kube_leader_gate::request::{RequestInfo, Verb};
use proptest::prelude::*;

mod tables;

const READS: [Method; 3] = [Method::GET, Method::HEAD, Method::OPTIONS];

fn read(method: &str, uri: &str) -> bool {
    RequestInfo::of(&Request::builder().method(method).uri(uri).body(()).unwrap()).is_read()
}

#[test]
fn upgrade_in_any_header_is_a_connection() {
    for (headers, upgrade) in [
        (&[][..], false),
        (&["Upgrade"], true),
        (&["upgrade"], true),
        (&["UPGRADE"], true),
        (&["keep-alive, Upgrade"], true),
        (&["keep-alive,upgrade ,close"], true),
        (&["keep-alive", "upgrade"], true),
        (&["xupgraded"], true), // the server's proxies only compare the letters
        (&["keep-alive", "close"], false),
        (&["upgrad"], false),
    ] {
        for uri in [
            "/apis/example.com/v1/things",
            "/api/v1/nodes/n/proxy",
            "/healthz",
            "/apis/metrics.k8s.io/v1/nodes/n",
        ] {
            let mut request = Request::get(uri).header(UPGRADE, "websocket").body(()).unwrap();
            for header in headers {
                request.headers_mut().append(CONNECTION, header.parse().unwrap());
            }
            let info = RequestInfo::of(&request);
            assert_eq!(info.is_read(), !upgrade, "{headers:?} {uri}");
            assert_eq!(info.is_upgrade(), upgrade, "{headers:?} {uri}");
            assert_eq!(info.verb() == Verb::Connect, upgrade || uri.ends_with("proxy"), "{headers:?} {uri}");
            let later = RequestInfo::from_parts(request.method(), request.uri(), upgrade);
            assert_eq!((later.is_read(), later.verb()), (info.is_read(), info.verb()));
        }
    }
}

fn decoded(part: &str) -> std::borrow::Cow<'_, str> {
    percent_encoding::percent_decode_str(part).decode_utf8_lossy()
}

/// The server grants such an upgrade for a watch or a log at most.
#[test]
fn upgrade_of_plain_built_in_resource_is_ignored() {
    for (method, uri, verb, reads) in [
        (Method::GET, "/api/v1/pods", Verb::List, true),
        (Method::GET, "/apis/apps/v1/deployments?watch=1", Verb::Watch, true),
        (Method::GET, "/api/v1/namespaces/a/pods/p/log?follow=true", Verb::Get, true),
        (Method::HEAD, "/apis/batch/v1/namespaces/a/jobs/exec", Verb::Get, true),
        (Method::HEAD, "/api/v1/namespaces/a/pods/my%20pod", Verb::Get, true),
        (Method::POST, "/api/v1/namespaces/a/pods", Verb::Create, false),
        (Method::DELETE, "/apis/apps.example.com/v1/deployments", Verb::DeleteCollection, false),
        (Method::PUT, "/healthz", Verb::Put, false),
        (Method::GET, "/healthz", Verb::Connect, false),
        (Method::OPTIONS, "/healthz", Verb::Options, false),
        (Method::GET, "/api/v1/namespaces/a/pods/p/exec", Verb::Connect, false),
        (Method::GET, "/api/v1/proxy/namespaces/a/pods/p", Verb::Proxy, false),
        (Method::GET, "/apis/apps.example.com/v1/deployments", Verb::Connect, false),
        (Method::HEAD, "/apis/autoscaling/v2/horizontalpodautoscalers", Verb::List, true),
        // An aggregated API may have any version of any group.
        (Method::GET, "/apis/apps/v9/namespaces/a/things/x/console", Verb::Connect, false),
        (Method::HEAD, "/apis/apps/v2/namespaces/a/things", Verb::Connect, false),
        (Method::GET, "/apis/batch/v1beta1/cronjobs?watch=1", Verb::Connect, false),
        (Method::GET, "/apis/storagemigration.k8s.io/v1/x", Verb::Connect, false),
        (Method::GET, "/api/v1/namespaces/a//pods", Verb::Unknown, false),
        (Method::OPTIONS, "/api/v1/pods", Verb::Unknown, false),
    ] {
        let uri = Uri::from_static(uri);
        let info = RequestInfo::from_parts(&method, &uri, true);
        assert_eq!((info.verb(), info.is_read()), (verb, reads), "{method} {uri}");
    }
}

#[test]
fn every_target_form_is_parsed_or_rejected() {
    for (uri, passes) in [
        ("https://10.0.0.1:6443/api/v1/namespaces/default/pods/web-0", true),
        ("http://other/api/v1/pods?watch=1", true),
        ("http://other", true),
        ("/", true),
        ("http://other/api/v1/namespaces/default/pods/web-0/exec", false),
        ("http://other/api/v1/namespaces/default/pods/web-0/%65xec", false),
        ("other:443", false),
        ("*", false),
        // The caution must not cost anything that ordinary clients need.
        ("/debug/pprof/", true),
        ("/apis/custom.metrics.k8s.io/v1beta1/namespaces/a/pods/*/http_requests", true),
        ("/apis/external.metrics.k8s.io/v1beta1/namespaces/a/queue_depth?labelSelector=x", true),
        // As kubectl and the autoscaler send `pubsub|messages`.
        ("/apis/external.metrics.k8s.io/v1beta1/namespaces/a/pubsub%7Cmessages", true),
        ("/apis/custom.metrics.k8s.io/v1beta1/namespaces/a/pods/%2A/pubsub%7Cmessages", true),
        ("/apis/custom.metrics.k8s.io/v1beta1/namespaces/a/pods/x/exec%3Fa", false),
        ("/apis/custom.metrics.k8s.io/v1beta1/namespaces/a/pods/x/%7C%65xec", false),
        // A gateway that passes the decoded path on turns it into a query.
        ("/apis/example.com/v1/things/x/y/exec%3Fz", false),
        ("/apis/example.com/v1/things/x/y/%65xec%23z", false),
        ("/apis/example.com/v1/things/x/y/z%3F", true),
        ("/api/v1/namespaces/a/services/https:web:8443/proxy/", true),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles/my%2Drole", true),
        ("/api/v1/namespaces/a/pods/web-0/log?follow=true", true),
    ] {
        assert_eq!(read("GET", uri), passes, "{uri}");
        assert!(!read("POST", uri), "{uri}");
        assert!(!read("get", uri), "{uri}");
    }
    assert!(read("OPTIONS", "/healthz"));
    assert!(!read("OPTIONS", "/api/v1/pods"));
}

#[test]
fn first_watch_parameter_decides() {
    for (query, verb) in [
        ("", Verb::List),
        ("watch", Verb::Watch),
        ("watch=", Verb::Watch),
        ("watch=1", Verb::Watch),
        ("watch=%74rue", Verb::Watch),
        ("w%61tch=no", Verb::Watch),
        ("watch=0", Verb::List),
        ("watch=%46alse", Verb::List),
        ("watch=FALSE&watch=1", Verb::List),
        ("watch=1;&watch=0", Verb::List),
        ("watch=%zz", Verb::List),
        ("watch=%4", Verb::List),
        ("Watch=1&x=watch", Verb::List),
    ] {
        let uri: Uri = format!("/api/v1/pods?{query}").parse().unwrap();
        let info = RequestInfo::from_parts(&Method::GET, &uri, false);
        assert!(info.is_read());
        assert_eq!(info.verb(), verb, "{query}");
    }
}

/// Go ignores a query with more than 10,000 pairs, empty ones included.
#[test]
fn query_with_excess_pairs_is_no_watch() {
    for (count, verb) in [(9_999, Verb::Watch), (10_000, Verb::List), (10_001, Verb::List)] {
        for query in [format!("watch=1{}", "&".repeat(count)), format!("{}watch=1", "x&".repeat(count))] {
            let uri: Uri = format!("/api/v1/pods?{query}").parse().unwrap();
            assert_eq!(RequestInfo::from_parts(&Method::GET, &uri, false).verb(), verb, "{count}");
        }
    }
}

#[test]
fn target_displays_as_in_a_role() {
    for (uri, target) in [
        ("/api/v1/configmaps", "configmaps"),
        ("/api/v1/namespaces/a/pods/b/exec", "pods/exec"),
        ("/apis/apps/v1/namespaces/a/deployments/b/status", "deployments.apps/status"),
        ("/healthz/ping?verbose", "/healthz/ping"),
        ("http://h/api/v1/%70ods", "/api/v1/%70ods"),
        ("h:443", ""),
    ] {
        let uri: Uri = uri.parse().unwrap();
        assert_eq!(RequestInfo::from_parts(&Method::PUT, &uri, false).target().to_string(), target);
    }
}

/// One character as it is, or in another spelling that some server takes for the same.
fn spelled(text: &str) -> impl Strategy<Value = String> + use<> {
    let text = text.to_owned();
    prop::collection::vec(0..96_u8, text.len()).prop_map(move |how| {
        let spell = |(byte, how): (u8, u8)| match how {
            0 => format!("%{byte:02x}"),
            1 => format!("%{byte:02X}"),
            2 => char::from(byte.to_ascii_uppercase()).to_string(),
            3 => format!("{}/", char::from(byte)),
            _ => char::from(byte).to_string(),
        };
        text.bytes().zip(how).map(spell).collect()
    })
}

/// Paths that may hide a connection, in good and bad spellings, with a segment added or replaced.
fn path() -> impl Strategy<Value = String> {
    let base = prop::sample::select(vec![
        "/api/v1/namespaces/a/pods/b/exec",
        "/api/v1/namespaces/a/pods/b/attach",
        "/apis/x.io/v1/namespaces/a/things/b/portforward",
        "/apis/x.io/v1/things/b/exec",
        "/api/v1/watch/nodes/b/attach",
        "/api/v1/watch/namespaces/a/pods/b/portforward",
        "/api/v1/proxy/namespaces/a/pods/b/exec",
        "/api/v1/namespaces/a/services/b/proxy/exec",
        "/api/v1/namespaces/a/status/exec",
    ]);
    let word = prop::sample::select(vec![
        "",
        ".",
        "..",
        "exec",
        "proxy",
        "watch",
        "namespaces",
        "api",
        "status",
        "x",
    ]);
    let odd = prop_oneof![word.prop_map(str::to_owned), "[!-~\\u{80}-\\u{ff}]{0,4}"];
    let edit = prop::option::of((any::<prop::sample::Index>(), odd, any::<bool>()));
    (base.prop_flat_map(spelled), edit).prop_map(|(path, edit)| {
        let Some((index, odd, replace)) = edit else {
            return path;
        };
        let mut segments: Vec<_> = path.split('/').skip(1).map(str::to_owned).collect();
        let index = index.index(segments.len());
        if replace {
            segments[index] = odd;
        } else {
            segments.insert(index, odd);
        }
        format!("/{}", segments.join("/"))
    })
}

/// Random bytes, and bytes that the parser accepts for longer.
fn target() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<Vec<u8>>(),
        "(http://h)?/[!-~\\u{80}-\\u{ff}/%?]{0,30}".prop_map(String::into_bytes),
        (path(), "(\\?[!-~]{0,9})?").prop_map(|(path, query)| (path + &query).into_bytes()),
    ]
}

/// The subresource as the server reads it, as a table of positions: decode, trim, split.
fn server_subresource(path: &str) -> Option<String> {
    let decoded: Vec<u8> = percent_encoding::percent_decode_str(path).collect();
    let decoded = String::from_utf8_lossy(&decoded).into_owned();
    let parts: Vec<&str> = decoded.trim_matches('/').split('/').collect();
    let (["api", _, rest @ ..] | ["apis", _, _, rest @ ..]) = parts.as_slice() else {
        return None;
    };
    let mut rest = rest;
    if let ["watch", tail @ ..] = rest {
        rest = tail;
    }
    match rest {
        ["namespaces", _, own @ ("status" | "finalize"), ..] => Some((*own).to_owned()),
        ["namespaces", _, _, _, subresource, ..] => Some((*subresource).to_owned()),
        ["namespaces", ..] => None,
        [_, _, subresource, ..] => Some((*subresource).to_owned()),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn random_request_never_panics_and_three_methods_read(method in "[!-~]{1,8}|GET|HEAD|OPTIONS|POST", uri in target(), upgrade: bool) {
        if let (Ok(method), Ok(uri)) = (Method::from_bytes(method.as_bytes()), Uri::try_from(uri)) {
            let info = RequestInfo::from_parts(&method, &uri, upgrade);
            let said = format!("{info:?} {} {} {:?} {:?}", info.verb(), info.target(), info.name(), info.namespace());
            prop_assert!(!info.is_read() || READS.contains(&method), "{said}");
            prop_assert!(!info.is_read() || !upgrade || !info.resource().is_empty(), "{said}");
        }
    }

    #[test]
    fn get_of_connect_subresource_is_no_read(
        path in path(),
        query in "(\\?[!-~]{0,9})?",
    ) {
        let Ok(uri) = Uri::try_from(format!("{path}{query}")) else { return Ok(()) };
        let info = RequestInfo::from_parts(&Method::GET, &uri, false);
        let subresource = server_subresource(uri.path());
        if subresource.as_deref().is_some_and(|sub| ["exec", "attach", "portforward"].contains(&sub)) {
            prop_assert!(!info.is_read(), "{uri}");
        }
        if !info.resource().is_empty() && info.verb() != Verb::Proxy {
            prop_assert_eq!(decoded(info.subresource()), subresource.unwrap_or_default(), "{}", uri);
        }
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::TRACE, Method::CONNECT] {
            prop_assert!(!RequestInfo::from_parts(&method, &uri, false).is_read(), "{method} {uri}");
        }
    }

    /// A rule must not take an odd spelling for what it looks like.
    #[test]
    fn policy_sees_one_spelling_of_each_request(path in path(), upgrade: bool) {
        let Ok(uri) = Uri::try_from(path) else { return Ok(()) };
        for method in [Method::GET, Method::HEAD, Method::POST, Method::PATCH, Method::DELETE] {
            let info = RequestInfo::from_parts(&method, &uri, upgrade);
            if info.is_read() || info.resource().is_empty() || info.subresource() == "proxy" || info.verb() == Verb::Proxy {
                continue;
            }
            // Backwards: from the parts to the one path that has them.
            let mut said: Vec<&str> = if info.group().is_empty() { vec!["api"] } else { vec!["apis", info.group()] };
            let (namespace, name) = (info.namespace().unwrap_or_default(), info.name().unwrap_or_default());
            said.push(info.version());
            if uri.path().split('/').nth(said.len() + 1) == Some("watch") {
                said.push("watch");
            }
            if !namespace.is_empty() && (info.resource() != "namespaces" || name != namespace) {
                said.extend(["namespaces", &namespace]);
            }
            said.extend([info.resource(), &name, info.subresource()].into_iter().filter(|part| !part.is_empty()));
            prop_assert_eq!(format!("/{}", said.join("/")), decoded(uri.path()), "{} {}", method, uri);
            let escaped = uri.path().split('/').filter(|segment| segment.contains('%')).count();
            prop_assert!(escaped <= 1, "only the name may be escaped: {uri}");
        }
    }
}

#[test]
fn request_is_described_by_its_own_method_path_and_query() {
    let request = Request::delete("/api/v1/namespaces/a/pods?dryRun=All").body(()).unwrap();
    let info = RequestInfo::of(&request);
    assert_eq!(info.method(), Method::DELETE);
    assert_eq!((info.path(), info.query()), ("/api/v1/namespaces/a/pods", Some("dryRun=All")));
}

/// Behind the legacy prefix, everything after the name is the backend's path.
#[test]
fn legacy_proxy_path_has_no_subresource() {
    for path in ["log", "status", "log/"] {
        let request = Request::get(format!("/api/v1/proxy/namespaces/a/pods/b/{path}")).body(()).unwrap();
        let info = RequestInfo::of(&request);
        assert_eq!((info.verb(), info.resource(), info.subresource()), (Verb::Proxy, "pods", ""), "{path}");
    }
}
