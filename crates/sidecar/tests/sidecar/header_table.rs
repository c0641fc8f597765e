//! Each row of the tables of headers in `HTTP.md`, over a socket.

use crate::{
    callers::Raw,
    process::{Sidecar, kubeconfig},
    upstream::Upstream,
    wait::until,
};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::{collections::BTreeSet, fs};

/// The API server's address in the document.
const SERVER: &str = "10.0.0.1:6443";
const TABLES: [&str; 3] = ["The caller sends", "The caller sends, under `as: app`", "The API server answers"];

/// Headers before and behind the sidecar, as `Name: value`.
type Row = [Vec<String>; 2];

/// The rows of the table whose first column has this title.
fn table(called: &str) -> Vec<Row> {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/HTTP.md")).unwrap();
    let (mut rows, mut cells) = (Vec::new(), Vec::<(String, Vec<String>)>::new());
    let mut is_wanted = false;
    for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::TableCell) => cells.push(Default::default()),
            Event::Text(text) => cells.last_mut().into_iter().for_each(|cell| cell.0.push_str(&text)),
            Event::Code(code) => cells.last_mut().into_iter().for_each(|cell| {
                cell.0.extend(["`", &*code, "`"]);
                cell.1.push(code.to_string());
            }),
            Event::End(TagEnd::TableHead) => is_wanted = cells.drain(..).next().unwrap().0 == called,
            Event::End(TagEnd::TableRow) => {
                let mut row = cells.drain(..).map(|(_, headers)| headers);
                if is_wanted {
                    rows.push([row.next().unwrap(), row.next().unwrap()]);
                }
            }
            _ => {}
        }
    }
    assert!(!rows.is_empty(), "HTTP.md has no table {called:?}");
    rows
}

fn name(header: &str) -> String {
    header.split_once(": ").expect("a name and a value").0.to_lowercase()
}

/// Those `headers` that the row names.
fn of<'a>(row: &Row, headers: impl Iterator<Item = (&'a str, &'a [u8])>) -> Vec<String> {
    let wanted: BTreeSet<String> = row.iter().flatten().map(|header| name(header)).collect();
    let found = headers.filter(|(name, _)| wanted.contains(&name.to_lowercase()));
    let text = |(name, value): (&str, &[u8])| {
        format!("{}: {}", name.to_lowercase(), String::from_utf8_lossy(value).trim())
    };
    sorted(found.map(text))
}

fn sorted(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    lines
}

fn expected(row: &Row, upstream: &Upstream) -> Vec<String> {
    sorted(row[1].iter().map(|header| {
        let value = header.split_once(": ").unwrap().1.replace(SERVER, &upstream.addr.to_string());
        format!("{}: {value}", name(header))
    }))
}

/// Sends these headers, other headers that no row names, and a body. Returns the head of the answer.
async fn send(sidecar: &Sidecar, path: &str, headers: &[String]) -> String {
    let has = |wanted: &str| headers.iter().any(|header| name(header) == wanted);
    let mut head = String::new();
    for header in headers {
        head.extend([header.as_str(), "\r\n"]);
    }
    if !has("host") {
        head.push_str("host: localhost\r\n");
    }
    let body = if has("transfer-encoding") {
        "5\r\n12345\r\n0\r\n\r\n"
    } else if has("content-length") {
        "12345"
    } else {
        ""
    };
    let mut raw = Raw::send(sidecar.addr, &format!("GET {path} HTTP/1.1\r\n{head}\r\n{body}")).await;
    raw.read_until("\r\n\r\n").await
}

async fn check_requests(called: &str, sidecar: &Sidecar, upstream: &Upstream) {
    for (number, row) in table(called).iter().enumerate() {
        let path = format!("/test/row-{number}");
        send(sidecar, &path, &row[0]).await;
        until("the request has arrived", || upstream.has_seen(&path)).await;
        let seen = upstream.seen(&path);
        let seen = seen.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        assert_eq!(of(row, seen), expected(row, upstream), "{row:?}");
    }
}

#[tokio::test]
async fn request_headers_match_the_documented_table() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "own").await;
    check_requests(TABLES[0], &sidecar, &upstream).await;
}

#[tokio::test]
async fn impersonating_kubeconfig_drops_callers_impersonation_headers() {
    let upstream = Upstream::start().await;
    let mut kubeconfig = kubeconfig(&upstream.url(), "own");
    kubeconfig["users"][0]["user"]["as"] = "app".into();
    let sidecar = Sidecar::start_with(kubeconfig, "own", &[]).await;
    check_requests(TABLES[1], &sidecar, &upstream).await;
}

#[tokio::test]
async fn answer_headers_match_the_documented_table() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "own").await;
    for row in table(TABLES[2]) {
        let asked: Vec<_> = row[0].iter().map(|header| format!("X-Answer: {header}")).collect();
        let head = send(&sidecar, "/test/answer", &asked).await;
        let lines = head.lines().filter_map(|line| line.split_once(':'));
        let got = lines.map(|(name, value)| (name, value.as_bytes()));
        assert_eq!(of(&row, got), expected(&row, &upstream), "{row:?}: {head}");
    }
}
