//! The two tables of `tests/data`.

use std::collections::BTreeMap;

use http::Request;
use http::header::{CONNECTION, UPGRADE};
use kube_leader_gate::request::{RequestInfo, Verb};

use super::READS;

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
        let families =
            ["openapi-doc", "openapi-anymethod", "plain-reads", "plain-writes", "crd", "aggregated", "query"];
        // One of these families' rows has a namespace that no server would have.
        let written = self.column(16) == "R0-method-not-read" && !self.column(7).contains(':');
        self.expected() == "pass" || (written && families.contains(&self.column(15)))
    }

    /// The `http` crate cuts a fragment off, so that another request is sent than the row says.
    fn is_cut(&self) -> bool {
        self.uri().contains('#')
    }

    /// A resource of a group that the server documents, and so answers for.
    fn is_built_in(&self) -> bool {
        let group = self.column(5);
        let documented =
            || include_str!("../data/openapi-operations.tsv").contains(&format!("\t/apis/{group}/"));
        self.column(2) == "true" && (group.is_empty() || documented())
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
    include_str!("../data/request-corpus.tsv").split('\n').skip(1).filter(|line| !line.is_empty()).map(
        |line| {
            let columns: Vec<_> = line.split('\t').collect();
            assert_eq!(columns.len(), 17, "{line}");
            Row { line, columns }
        },
    )
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
            expected => expected,
        };
        let passes = RequestInfo::of(&request).is_read();
        if matches!((case, passes), ("reject", true) | ("pass", false)) {
            wrong.push(row.line);
        }
        *seen.entry(case).or_default() += 1;
    }
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    let all = [("another request", 32), ("either", 526), ("not sent", 14), ("pass", 1432), ("reject", 2255)];
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
            assert!(info.query().is_some_and(|query| query.contains("metadata.name")), "{}", row.line);
            theirs[7] = "";
        }
        let ours = [
            resource.as_str(),
            verb,
            info.group(),
            info.version(),
            &info.namespace().unwrap_or_default(),
            info.resource(),
            info.subresource(),
            &name,
        ];
        if ours != theirs {
            wrong.push(format!("{ours:?}, not {theirs:?}: {}", row.line));
        }
    }
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(parsed, 3424);
}

/// The server's verb, but for the differences that [`Verb`] documents.
fn expected_verb(row: &Row) -> &'static str {
    let (method, verb) = (row.column(0), row.column(3));
    let known = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"].contains(&method);
    let connection = matches!(row.column(9), "exec" | "attach" | "portforward" | "proxy");
    match (method, verb) {
        _ if !known => "unknown",
        (_, "proxy") => "proxy",
        _ if connection => "connect",
        // The server ignores it for what it answers by itself.
        ("GET" | "HEAD", _) if row.asks_for_upgrade() && !row.is_built_in() => "connect",
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
    for line in include_str!("../data/openapi-operations.tsv").lines() {
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
        assert_eq!((info.verb(), info.is_read(), info.is_resource()), (verb, read, action != "-"), "{line}");
        if action == "-" {
            let request = Request::get(uri.trim_end_matches('/')).body(()).unwrap();
            assert!(RequestInfo::of(&request).is_read(), "{line}");
        }
        *counts.entry(read).or_insert(0) += 1;
    }
    assert_eq!(counts, BTreeMap::from([(true, 47 + 96 + 93 + 60 + 92 + 12), (false, 814 - 400)]));
}
