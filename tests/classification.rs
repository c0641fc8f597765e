//! The classification agrees with Kubernetes' own, row by row; see `tests/data/README.md`.

use std::collections::BTreeMap;

use http::header::{CONNECTION, UPGRADE};
use http::{Method, Request, Uri};
use kube_leader_gate::request::{RequestInfo, Verb};
use proptest::prelude::*;

const READS: [Method; 3] = [Method::GET, Method::HEAD, Method::OPTIONS];

/// A row of `request-corpus.tsv`.
struct Row {
    line: &'static str,
    columns: Vec<&'static str>,
}

impl Row {
    fn column(&self, index: usize) -> &'static str {
        self.columns[index]
    }

    fn uri(&self) -> &'static str {
        self.column(1)
    }

    fn expected(&self) -> &'static str {
        self.column(12)
    }

    /// Spelled as clients spell it, so that it must parse.
    fn is_ordinary(&self) -> bool {
        let families = [
            "openapi-doc",
            "openapi-anymethod",
            "plain-reads",
            "plain-writes",
            "crd",
            "aggregated",
            "query",
        ];
        // One of these families' rows has a namespace that no server would have.
        let written = self.column(16) == "R0-method-not-read" && !self.column(7).contains(':');
        self.expected() == "pass" || (written && families.contains(&self.column(15)))
    }

    /// The `http` crate cuts a fragment off, so that another request is sent than the row says.
    fn is_cut(&self) -> bool {
        self.uri().contains('#')
    }

    fn asks_for_upgrade(&self) -> bool {
        self.column(13).to_ascii_lowercase().contains("upgrade")
    }

    /// `None` when the `http` crate refuses it: then it is never sent.
    fn request(&self) -> Option<Request<()>> {
        let mut request = Request::builder().method(self.column(0)).uri(self.uri());
        for (header, value) in [(CONNECTION, self.column(13)), (UPGRADE, self.column(14))] {
            if value != "-" {
                request = request.header(header, value);
            }
        }
        request.body(()).ok()
    }
}

fn corpus() -> impl Iterator<Item = Row> {
    include_str!("data/request-corpus.tsv")
        .split('\n')
        .skip(1)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let columns: Vec<_> = line.split('\t').collect();
            assert_eq!(columns.len(), 17, "{line}");
            Row { line, columns }
        })
}

#[test]
fn no_row_that_must_be_rejected_passes_and_none_that_must_pass_is_rejected() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for row in corpus() {
        let Some(request) = row.request() else {
            assert_ne!(row.expected(), "pass", "{}", row.line);
            *seen.entry("not sent").or_default() += 1;
            continue;
        };
        let reads = READS.contains(request.method());
        let case = match row.expected() {
            _ if reads && row.is_cut() => "another request",
            "pass" if row.asks_for_upgrade() => "upgrade",
            expected => expected,
        };
        let passes = RequestInfo::of(&request).is_read();
        if matches!((case, passes), ("reject" | "upgrade", true) | ("pass", false)) {
            wrong.push(row.line);
        }
        if case == "upgrade" {
            let plain = Request::builder()
                .method(request.method())
                .uri(request.uri())
                .body(())
                .unwrap();
            assert!(RequestInfo::of(&plain).is_read(), "{}", row.line);
        }
        *seen.entry(case).or_default() += 1;
    }
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    let all = [
        ("another request", 32),
        ("either", 526),
        ("not sent", 14),
        ("pass", 1409),
        ("reject", 2255),
        ("upgrade", 23),
    ];
    assert_eq!(seen, BTreeMap::from(all));
}

#[test]
fn what_parses_has_the_parts_that_the_server_sees() {
    let mut parsed = 0;
    let mut wrong = Vec::new();
    for row in corpus().filter(|row| !row.is_cut()) {
        let Some(request) = row.request() else { continue };
        let info = RequestInfo::of(&request);
        if !info.is_parsed() {
            assert_eq!(info.verb(), Verb::Unknown, "{}", row.line);
            if row.is_ordinary() {
                wrong.push(format!("not parsed: {}", row.line));
            }
            continue;
        }
        parsed += 1;
        let name = info.name().unwrap_or_default();
        let (resource, verb) = (info.is_resource().to_string(), info.verb().as_str());
        let mut theirs = [2, 3, 5, 6, 7, 8, 9, 10].map(|index| row.column(index));
        theirs[1] = expected_verb(&row);
        if matches!(verb, "list" | "watch") && name.is_empty() && !theirs[7].is_empty() {
            // The server takes the name from a field selector; for a read it matters to nobody here.
            assert!(
                info.query().is_some_and(|query| query.contains("metadata.name")),
                "{}",
                row.line
            );
            theirs[7] = "";
        }
        let ours = [
            resource.as_str(),
            verb,
            info.group(),
            info.version(),
            info.namespace().unwrap_or_default(),
            info.resource(),
            info.subresource(),
            &name,
        ];
        if ours != theirs {
            wrong.push(format!("{ours:?}, not {theirs:?}: {}", row.line));
        }
    }
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(parsed, 3332);
}

/// The server's verb, but for the differences that [`Verb`] documents.
fn expected_verb(row: &Row) -> &'static str {
    let (method, verb) = (row.column(0), row.column(3));
    let known = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"].contains(&method);
    let connection = matches!(row.column(9), "exec" | "attach" | "portforward" | "proxy");
    match (method, verb) {
        _ if !known => "unknown",
        (_, "proxy") => "proxy",
        _ if connection || row.asks_for_upgrade() => "connect",
        ("POST", "watch") => "create",
        ("PUT", "watch") => "update",
        ("PATCH", "watch") => "patch",
        ("DELETE", "watch") if row.column(10).is_empty() => "deletecollection",
        ("DELETE", "watch") => "delete",
        ("OPTIONS", "watch") | (_, "") => "unknown",
        _ => verb,
    }
}

#[test]
fn every_documented_operation_has_its_verb() {
    let mut counts = BTreeMap::new();
    for line in include_str!("data/openapi-operations.tsv").lines() {
        let [method, template, action, ..] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let uri = template
            .replace("{namespace}", "kube-system")
            .replace("/namespaces/{name}", "/namespaces/kube-system")
            .replace("{name}", "system%3Anode:web-0.example_1")
            .replace("{path}", "api/v1/query");
        assert!(!uri.contains('{'), "{line}");
        let request = Request::builder().method(method).uri(&uri).body(()).unwrap();
        let info = RequestInfo::of(&request);
        let proxied = info.subresource() == "proxy" && ["GET", "HEAD"].contains(&method);
        let (verb, read) = match action {
            "-" | "get" => (Verb::Get, true),
            "list" => (Verb::List, true),
            "watch" | "watchlist" => (Verb::Watch, true),
            "post" => (Verb::Create, false),
            "put" => (Verb::Update, false),
            "patch" => (Verb::Patch, false),
            "delete" => (Verb::Delete, false),
            "deletecollection" => (Verb::DeleteCollection, false),
            "connect" => (Verb::Connect, proxied),
            other => panic!("{other}: {line}"),
        };
        assert_eq!(
            (info.verb(), info.is_read(), info.is_resource()),
            (verb, read, action != "-"),
            "{line}"
        );
        if action == "-" {
            let request = Request::get(uri.trim_end_matches('/')).body(()).unwrap();
            assert!(RequestInfo::of(&request).is_read(), "{line}");
        }
        *counts.entry(read).or_insert(0) += 1;
    }
    assert_eq!(
        counts,
        BTreeMap::from([(true, 47 + 96 + 93 + 60 + 92 + 12), (false, 814 - 400)])
    );
}

fn read(method: &str, uri: &str) -> bool {
    RequestInfo::of(&Request::builder().method(method).uri(uri).body(()).unwrap()).is_read()
}

#[test]
fn an_upgrade_is_a_connection_in_whatever_header_it_is_asked_for() {
    for (headers, upgrade) in [
        (&[][..], false),
        (&["Upgrade"], true),
        (&["upgrade"], true),
        (&["UPGRADE"], true),
        (&["keep-alive, Upgrade"], true),
        (&["keep-alive,upgrade ,close"], true),
        (&["keep-alive", "upgrade"], true),
        (&["xupgraded"], true), // the server's proxies look for the letters only
        (&["keep-alive", "close"], false),
        (&["upgrad"], false),
    ] {
        for uri in [
            "/api/v1/pods",
            "/api/v1/nodes/n/proxy",
            "/healthz",
            "/api/v1/nodes/n",
        ] {
            let mut request = Request::get(uri).header(UPGRADE, "websocket").body(()).unwrap();
            for header in headers {
                request.headers_mut().append(CONNECTION, header.parse().unwrap());
            }
            let info = RequestInfo::of(&request);
            assert_eq!(info.is_read(), !upgrade, "{headers:?} {uri}");
            assert_eq!(info.is_upgrade(), upgrade, "{headers:?} {uri}");
            assert_eq!(
                info.verb() == Verb::Connect,
                upgrade || uri.ends_with("proxy"),
                "{headers:?} {uri}"
            );
            let later = RequestInfo::from_parts(request.method(), request.uri(), upgrade);
            assert_eq!((later.is_read(), later.verb()), (info.is_read(), info.verb()));
        }
    }
}

#[test]
fn every_form_of_a_target_is_understood_or_rejected() {
    for (uri, passes) in [
        ("https://10.0.0.1:6443/api/v1/namespaces/default/pods/web-0", true),
        ("http://other/api/v1/pods?watch=1", true),
        ("http://other", true),
        ("/", true),
        ("http://other/api/v1/namespaces/default/pods/web-0/exec", false),
        ("http://other/api/v1/namespaces/default/pods/web-0/%65xec", false),
        ("other:443", false),
        ("*", false),
        // Nothing that ordinary use needs may be lost to caution.
        ("/debug/pprof/", true),
        (
            "/apis/custom.metrics.k8s.io/v1beta1/namespaces/a/pods/*/http_requests",
            true,
        ),
        (
            "/apis/external.metrics.k8s.io/v1beta1/namespaces/a/queue_depth?labelSelector=x",
            true,
        ),
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
fn the_first_watch_that_the_server_reads_decides() {
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

#[test]
fn the_target_reads_as_in_a_role() {
    for (uri, target) in [
        ("/api/v1/configmaps", "configmaps"),
        ("/api/v1/namespaces/a/pods/b/exec", "pods/exec"),
        (
            "/apis/apps/v1/namespaces/a/deployments/b/status",
            "deployments.apps/status",
        ),
        ("/healthz/ping?verbose", "/healthz/ping"),
        ("http://h/api/v1/%70ods", "/api/v1/%70ods"),
        ("h:443", ""),
    ] {
        let uri: Uri = uri.parse().unwrap();
        assert_eq!(
            RequestInfo::from_parts(&Method::PUT, &uri, false)
                .target()
                .to_string(),
            target
        );
    }
}

/// Segments that matter, spelled in ways that matter, and others.
fn segment() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => prop::sample::select(vec![
            "api", "apis", "v1", "namespaces", "pods", "exec", "attach", "portforward", "proxy", "watch", "status", "x",
            "", ".", "..",
        ])
        .prop_map(str::to_owned),
        1 => "[!-~\u{80}-\u{ff}]{0,4}",
    ];
    (word, prop::collection::vec(any::<u8>(), 8)).prop_map(|(word, spelling)| {
        let spell = |(byte, how): (u8, &u8)| match how % 64 {
            0 => format!("%{byte:02x}"),
            1 => format!("%{byte:02X}"),
            2 => char::from(byte.to_ascii_uppercase()).to_string(),
            _ => char::from(byte).to_string(),
        };
        if word.is_ascii() {
            word.bytes().zip(spelling.iter().cycle()).map(spell).collect()
        } else {
            word
        }
    })
}

/// What the server takes the subresource to be, as a table of positions: decode, trim, split.
fn server_subresource(path: &str) -> Option<String> {
    let decoded: Vec<u8> = percent_encoding::percent_decode_str(path).collect();
    let decoded = String::from_utf8_lossy(&decoded).into_owned();
    let parts: Vec<&str> = decoded.trim_matches('/').split('/').collect();
    let mut rest = match parts.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        _ => return None,
    };
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
    fn nothing_panics_and_only_three_methods_read(method in "[!-~]{1,8}|GET|HEAD|OPTIONS|POST", uri in any::<Vec<u8>>(), upgrade: bool) {
        if let (Ok(method), Ok(uri)) = (Method::from_bytes(method.as_bytes()), Uri::try_from(uri)) {
            let info = RequestInfo::from_parts(&method, &uri, upgrade);
            let said = format!("{info:?} {} {} {:?} {:?}", info.verb(), info.target(), info.name(), info.namespace());
            prop_assert!(!info.is_read() || READS.contains(&method) && !upgrade, "{said}");
        }
    }

    #[test]
    fn a_get_that_the_server_takes_for_a_connection_is_no_read(
        segments in prop::collection::vec(segment(), 0..9),
        query in "(\\?[!-~]{0,9})?",
    ) {
        let path = format!("/{}", segments.join("/"));
        let Ok(uri) = Uri::try_from(format!("{path}{query}")) else { return Ok(()) };
        let info = RequestInfo::from_parts(&Method::GET, &uri, false);
        let subresource = server_subresource(uri.path());
        if subresource.as_deref().is_some_and(|sub| ["exec", "attach", "portforward"].contains(&sub)) {
            prop_assert!(!info.is_read(), "{uri}");
        }
        if info.is_resource() && info.verb() != Verb::Proxy {
            prop_assert_eq!(info.subresource(), subresource.unwrap_or_default(), "{}", uri);
        }
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::TRACE, Method::CONNECT] {
            prop_assert!(!RequestInfo::from_parts(&method, &uri, false).is_read(), "{method} {uri}");
        }
    }
}
