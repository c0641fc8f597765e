//! Text from outside, with line breaks, escapes and terminal sequences in it, forges no line of the log and steers no
//! terminal: in the log, in troubles, on pages and in errors.

use crate::{
    support::{builder, is_not_leader, lease, pass, write},
    work::runtime::logs::Logs,
};
use http::{Request, Response};
use kube_client::{
    Client,
    client::{AuthError, Body},
};
use kube_leader_gate::{Election, health::Health, leadership::Term, lease::LeasePool};
use serde_json::{Value, json};
use std::{io, time::Duration};
use tower::{BoxError, service_fn};

/// The server that answers can write this.
const PLANTED: &str = "planted\r\n2026-01-01T00:00:00.000000Z ERROR forged: \u{1b}[31m\u{1b}]0;title\u{7}\u{9b}2J\u{202e}\u{2028}\u{0}\tend";

type Planting = fn(&Request<Body>) -> Result<Response<Body>, BoxError>;

fn answer(code: u16, body: impl Into<Vec<u8>>) -> Response<Body> {
    Response::builder().status(code).body(Body::from(body.into())).unwrap()
}

fn status(code: u16) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": PLANTED, "reason": PLANTED,
        "details": { "name": PLANTED, "kind": PLANTED, "causes": [{ "reason": PLANTED, "message": PLANTED }] },
    })
}

/// A lease in which each text is planted.
fn planted_lease() -> Value {
    let spec = json!({
        "holderIdentity": PLANTED, "leaseDurationSeconds": 15, "acquireTime": PLANTED, "renewTime": PLANTED,
        "leaseTransitions": 3, "strategy": PLANTED, "preferredHolder": PLANTED,
    });
    let mut lease = lease(&spec);
    lease["metadata"] = json!({
        "name": "operator", "namespace": "default", "uid": PLANTED, "resourceVersion": PLANTED,
        "annotations": {
            "leader.istio.io/holder-key": PLANTED, "kube-leader-gate/claim": PLANTED, "kube-leader-gate/asked": PLANTED,
            "kube-leader-gate/waits-for": PLANTED, "kube-leader-gate/holder-pod": PLANTED,
        },
    });
    lease
}

/// This line to a watch, and the planted lease to any other request.
fn shows(request: &Request<Body>, line: &impl ToString) -> Response<Body> {
    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch"));
    let body = if is_watch { line.to_string() + "\n" } else { planted_lease().to_string() };
    answer(200, body)
}

/// What the candidate meets.
const PLANTINGS: [(&str, Planting); 10] = [
    ("a refusal", |_| Ok(answer(403, status(403).to_string()))),
    ("an unknown token", |_| Ok(answer(401, status(401).to_string()))),
    ("a web page", |_| Ok(answer(502, PLANTED))),
    ("an answer that is no JSON", |_| Ok(answer(200, PLANTED))),
    ("another lease", |_| {
        let metadata = json!({ "name": PLANTED, "namespace": PLANTED, "uid": "u", "resourceVersion": "1" });
        Ok(answer(200, json!({ "metadata": metadata, "spec": {} }).to_string()))
    }),
    ("a lease", |request| Ok(shows(request, &json!({ "type": "ADDED", "object": planted_lease() })))),
    ("an error of the watch", |request| {
        Ok(shows(request, &json!({ "type": "ERROR", "object": status(410) })))
    }),
    ("a line of the watch", |request| Ok(shows(request, &PLANTED))),
    ("an error of the connection", |_| Err(io::Error::other(PLANTED).into())),
    ("an error of the credentials", |_| Err(AuthError::AuthExec(PLANTED.to_owned()).into())),
];

/// One line that a terminal shows as it is.
fn is_harmless(text: &str) -> bool {
    let steers = |it: char| it.is_control() || "\u{202e}\u{2028}".contains(it);
    !text.chars().any(steers)
}

fn built(planting: Planting) -> (Election, Client) {
    let service = service_fn(move |request: Request<Body>| async move { planting(&request) });
    let client = Client::new(service, "default");
    let pool = {
        let client = client.clone();
        LeasePool::over(move || Ok(client.clone())).unwrap()
    };
    (builder("a").events(client.clone()).build_in(&pool).unwrap(), client)
}

#[tokio::test(start_paused = true)]
async fn foreign_text_forges_no_line_and_steers_no_terminal() {
    let mut shown = 0;
    for (what, planting) in PLANTINGS {
        let (logs, _capture) = Logs::capture();
        let (election, client) = built(planting);
        let gated = election.wrap(client);
        let health =
            Health::new(election.candidate(), Duration::from_secs(20)).ready_if(|| Err::<(), _>(PLANTED));
        let running = election.start();
        let mut texts = vec![];
        for _ in 0..40 {
            pass(Duration::from_secs(1)).await;
            texts.extend(running.candidate().trouble().map(|it| it.to_string()));
            texts.extend(running.candidate().term().map(|it| it.to_string()));
            for path in ["/livez", "/readyz", "/leader"] {
                texts.extend(health.answer(path).body.lines().map(str::to_owned));
            }
            let refused = write(&gated).await;
            if is_not_leader(&refused) {
                texts.push(refused.unwrap_err().to_string());
            }
        }
        running.stop().await;
        for text in &texts {
            assert!(is_harmless(text), "{what}: {text:?}");
        }
        for line in logs.lines() {
            let is_own =
                line.starts_with("20") && !line.contains(" ERROR forged") || line.contains("planted");
            assert!(is_own && is_harmless(&line), "{what}: {line:?}");
        }
        let has_some = |it: &String| it.contains("planted");
        shown += usize::from(texts.iter().any(has_some) || logs.lines().iter().any(has_some));
    }
    assert!(shown >= 7, "the text is shown where it helps: {shown}");
}

#[test]
fn term_of_a_lease_with_an_odd_uid_is_one_line() {
    let term = Term::new(PLANTED, 3).to_string();
    assert!(is_harmless(&term) && term.ends_with("/3"), "{term}");
}
