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

    /// In the spelling of clients, so that it must parse.
    fn is_ordinary(&self) -> bool {
        let families =
            ["openapi-doc", "openapi-anymethod", "plain-reads", "plain-writes", "crd", "aggregated", "query"];
        // One row of these families has a namespace that no server would accept.
        let written = self.column(16) == "R0-method-not-read" && !self.column(7).contains(':');
        self.expected() == "pass" || (written && families.contains(&self.column(15)))
    }

    /// The `http` crate removes a fragment, so the request that is sent is not the one in the row.
    fn is_cut(&self) -> bool {
        self.uri().contains('#')
    }

    /// A resource in a version of a group that the server documents and therefore serves.
    fn is_built_in(&self) -> bool {
        let (group, version) = (self.column(5), self.column(6));
        let documented = || {
            include_str!("../../data/openapi-operations.tsv").contains(&format!("\t/apis/{group}/{version}/"))
        };
        self.column(2) == "true" && (group.is_empty() && version == "v1" || documented())
    }

    fn asks_for_upgrade(&self) -> bool {
        self.column(13).to_ascii_lowercase().contains("upgrade")
    }

    /// `None` when the `http` crate refuses it: then no client can send it.
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
    rows(include_str!("../../data/request-corpus.tsv"), 17)
}

/// Kinds of paths that a client may well send, in more spellings than the corpus has. The last column is the answer
/// of a live server.
fn spellings() -> impl Iterator<Item = Row> {
    rows(include_str!("../../data/request-spellings.tsv"), 18)
}

fn rows(table: &'static str, columns: usize) -> impl Iterator<Item = Row> {
    table.split('\n').skip(1).filter(|line| !line.is_empty()).map(move |line| {
        let row = Row { line, columns: line.split('\t').collect() };
        assert_eq!(row.columns.len(), columns, "{line}");
        row
    })
}

#[test]
fn corpus_rows_pass_or_are_rejected_as_listed() {
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
fn parsed_parts_match_what_the_server_sees() {
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
        wrong.extend(misread(&row, &info));
    }
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(parsed, 3425);
}

/// The difference between these parts and those that the server saw, if there is one.
fn misread(row: &Row, info: &RequestInfo<'_>) -> Option<String> {
    let name = info.name().unwrap_or_default();
    let (resource, verb) = ((!info.resource().is_empty()).to_string(), info.verb().as_str());
    let mut theirs = [2, 3, 5, 6, 7, 8, 9, 10].map(|index| row.column(index));
    theirs[1] = expected_verb(row);
    if matches!(verb, "list" | "watch") && name.is_empty() && !theirs[7].is_empty() {
        // The server takes the name from a field selector. For a read that does not matter here.
        assert!(info.query().is_some_and(|query| query.contains("metadata.name")), "{}", row.line);
        theirs[7] = "";
    }
    let ours = [
        resource.as_str(),
        verb,
        info.group(),
        info.version(),
        &info.namespace().unwrap_or_default(),
        &super::decoded(info.resource()),
        &super::decoded(info.subresource()),
        &name,
    ];
    (ours != theirs).then(|| format!("{ours:?}, not {theirs:?}: {}", row.line))
}

/// Each row passes or is rejected as the table says, and a row that passes has the parts that the server saw.
#[test]
fn each_spelling_is_judged_as_listed() {
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for row in spellings() {
        let Some(request) = row.request() else { panic!("not sent: {}", row.line) };
        let info = RequestInfo::of(&request);
        let expected = row.expected();
        if info.is_read() != (expected == "pass") {
            wrong.push(row.line.to_owned());
        } else if info.is_read() {
            wrong.extend(misread(&row, &info));
        }
        *seen.entry((row.column(15), expected)).or_default() += 1;
    }
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    let all = [
        (("deep-tails", "pass"), 12),
        (("metric-words", "pass"), 25),
        (("odd-connections", "reject"), 26),
        (("odd-names", "pass"), 46),
        (("odd-writes", "reject"), 39),
        (("other-version", "pass"), 3),
        (("proxy-escapes", "pass"), 16),
        (("trailing-slash", "pass"), 36),
        (("two-readings", "reject"), 68),
        (("upgraded-writes", "reject"), 39),
    ];
    assert_eq!(seen, BTreeMap::from(all));
}

/// A read that passes changed nothing on the live server and opened no connection: the server answered it as a read.
#[test]
fn live_server_answered_passing_requests_as_reads() {
    for row in spellings().filter(|row| row.expected() == "pass") {
        assert!(
            ["get", "list", "watch"].contains(&row.column(3)) || row.column(2) == "false",
            "{}",
            row.line
        );
        assert!(!["exec", "attach", "portforward"].contains(&row.column(9)), "{}", row.line);
        assert!(["200", "204", "400", "404", "405", "503"].contains(&row.column(17)), "{}", row.line);
    }
    // Rows that are rejected although they look like reads: there the same spellings carried out writes and opened
    // connections.
    for (method, answer) in [("POST", "201"), ("DELETE", "200"), ("GET", "101"), ("DELETE", "101")] {
        let rejected = |row: &Row| row.expected() == "reject" && row.column(0) == method;
        assert!(spellings().any(|row| rejected(&row) && row.column(17) == answer), "{method} {answer}");
    }
}

/// The server's verb, except for the differences that [`Verb`] documents.
fn expected_verb(row: &Row) -> &'static str {
    let (method, verb) = (row.column(0), row.column(3));
    let known = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"].contains(&method);
    let connection = matches!(row.column(9), "exec" | "attach" | "portforward" | "proxy");
    match (method, verb) {
        _ if !known => "unknown",
        (_, "proxy") => "proxy",
        _ if connection => "connect",
        // The server ignores it for the resources that it serves itself.
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
    for line in include_str!("../../data/openapi-operations.tsv").lines() {
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
            (info.verb(), info.is_read(), !info.resource().is_empty()),
            (verb, read, action != "-"),
            "{line}"
        );
        if action == "-" {
            let request = Request::get(uri.trim_end_matches('/')).body(()).unwrap();
            assert!(RequestInfo::of(&request).is_read(), "{line}");
        }
        *counts.entry(read).or_insert(0) += 1;
    }
    assert_eq!(counts, BTreeMap::from([(true, 47 + 96 + 93 + 60 + 92 + 12), (false, 814 - 400)]));
}
