//! Each fault, in paused time.

use std::time::Duration;

use fake_kube_apiserver::{ApiServer, ConnectionDropped, Fault, WatchBreak};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::support::{LEASES, MAPS, Next, ask, read, send, watch};

const SECOND: Duration = Duration::from_secs(1);

fn body() -> String {
    json!({ "metadata": { "name": "x" } }).to_string()
}

fn is_there(server: &ApiServer) -> bool {
    server.object(&format!("{MAPS}/x")).is_some()
}

#[tokio::test(start_paused = true)]
async fn delay_comes_before_or_after_the_effect() {
    for (fault, early) in [(Fault::delay_before(3 * SECOND), false), (Fault::delay_after(3 * SECOND), true)] {
        let server = ApiServer::new();
        let guard = server.inject(fault);
        let start = Instant::now();
        let (answer, there) = tokio::join!(ask(&server, "POST", MAPS, body()), async {
            tokio::time::sleep(SECOND).await;
            is_there(&server)
        });
        assert_eq!((answer.code, there), (201, early));
        assert_eq!((start.elapsed(), guard.hits()), (3 * SECOND, 1));
        let log = server.write_log();
        let took = log[0].completed.unwrap().at - log[0].received.at;
        assert_eq!(
            took,
            if early { Duration::ZERO } else { 3 * SECOND },
            "the log knows the effect, not the answer"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_request_gets_no_answer() {
    for (fault, there) in [(Fault::hang_before(), false), (Fault::hang_after(), true)] {
        let server = ApiServer::new();
        let _guard = server.inject(fault.writes());
        let answer = timeout(1000 * SECOND, ask(&server, "POST", MAPS, body())).await;
        assert!(answer.is_err());
        assert_eq!(is_there(&server), there);
        assert_eq!(server.write_log()[0].status, if there { 201 } else { 0 });
        assert_eq!(ask(&server, "GET", MAPS, "").await.code, 200, "reads are not met");
    }
}

#[tokio::test(start_paused = true)]
async fn request_is_cancelled_when_client_disconnects() {
    let server = ApiServer::new();
    let _guard = server.inject(Fault::delay_before(8 * SECOND));
    assert!(timeout(SECOND, ask(&server, "POST", MAPS, body())).await.is_err());
    tokio::time::sleep(20 * SECOND).await;
    assert!(!is_there(&server));
    let log = server.write_log();
    assert_eq!((log.len(), log[0].status, log[0].completed), (1, 0, None));
}

#[tokio::test(start_paused = true)]
async fn server_keeps_timeout_of_client() {
    let server = ApiServer::new();
    let _guard = server.inject(Fault::delay_before(8 * SECOND));
    let start = Instant::now();
    let answer = ask(&server, "POST", &format!("{MAPS}?timeout=3s"), body()).await;
    assert_eq!(answer.said(), "Timeout: Timeout: request did not complete within the allotted timeout");
    assert_eq!((answer.code, start.elapsed()), (504, 3 * SECOND));
    assert!(!is_there(&server));
    assert_eq!(server.write_log()[0].status, 504);
}

#[tokio::test(start_paused = true)]
async fn connection_drops_before_or_after_the_effect() {
    for (fault, there) in [(Fault::drop_before(), false), (Fault::drop_after(), true)] {
        let server = ApiServer::new();
        let _guard = server.inject(fault);
        let error = send(&server, "a", "POST", MAPS, body()).await.expect_err("no answer");
        assert!(error.is::<ConnectionDropped>(), "{error:?}");
        assert_eq!(is_there(&server), there);
        assert_eq!(server.write_log()[0].completed.is_some(), there);
    }
}

#[tokio::test(start_paused = true)]
async fn injected_status_has_no_other_effect() {
    let server = ApiServer::new();
    for (code, said) in [
        (429, "TooManyRequests: Too many requests, please try again later."),
        (500, "InternalError: Internal error occurred: injected by a test"),
        (503, "ServiceUnavailable: the server is currently unable to handle the request"),
    ] {
        let _guard = server.inject(Fault::status_retry_after(code, 5 * SECOND));
        let answer = ask(&server, "POST", MAPS, body()).await;
        assert_eq!((answer.code, answer.said().as_str()), (code, said));
        assert_eq!(answer.headers["retry-after"], "5");
        assert_eq!(answer.body["details"]["retryAfterSeconds"], 5);
    }
    let _guard = server.inject(Fault::status(101));
    let answer = ask(&server, "POST", MAPS, body()).await;
    assert_eq!((answer.code, answer.headers.contains_key("retry-after")), (500, false));
    assert!(!is_there(&server));
    let codes: Vec<u16> = server.write_log().iter().map(|it| it.status).collect();
    assert_eq!(codes, [429, 500, 503, 500]);
}

#[tokio::test(start_paused = true)]
async fn forbidden_verb_gets_403() {
    let server = ApiServer::new();
    let _guard = server.inject(Fault::forbidden().verb("create").resource("leases"));
    let answer = ask(&server, "POST", LEASES, body()).await;
    assert_eq!(answer.code, 403);
    assert_eq!(
        answer.said(),
        "Forbidden: leases.coordination.k8s.io is forbidden: User \"a\" cannot create resource \"leases\" in API group \
         \"coordination.k8s.io\" in the namespace \"default\""
    );
    assert_eq!(ask(&server, "GET", LEASES, "").await.code, 200);
    assert_eq!(ask(&server, "POST", MAPS, body()).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn missing_namespace_gets_404() {
    let server = ApiServer::new();
    let _guard = server.inject(Fault::namespace_not_found().namespace("default"));
    let answer = ask(&server, "POST", MAPS, body()).await;
    assert_eq!((answer.code, answer.said().as_str()), (404, "NotFound: namespaces \"default\" not found"));
    assert_eq!(ask(&server, "POST", "/api/v1/namespaces/other/configmaps", body()).await.code, 201);
    assert_eq!(ask(&server, "GET", MAPS, "").await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn new_watch_breaks_after_existing_objects() {
    let server = ApiServer::new();
    ask(&server, "POST", MAPS, body()).await;
    for how in [WatchBreak::End, WatchBreak::Cut, WatchBreak::Expired, WatchBreak::Garbage] {
        let _guard = server.inject(Fault::break_watch(how).times(1));
        let mut broken = watch(&server, &format!("{MAPS}?watch=true")).await;
        assert_eq!(broken.brief().await, "ADDED x");
        match (how, broken.next().await) {
            (WatchBreak::End, Next::End) => {}
            (WatchBreak::Expired, Next::Event(kind, status)) => {
                assert_eq!((&*kind, &status["code"]), ("ERROR", &json!(410)));
                assert_eq!(broken.next().await, Next::End);
            }
            (WatchBreak::Cut, Next::Junk(_)) => assert_eq!(broken.next().await, Next::Broken),
            (WatchBreak::Garbage, Next::Junk(_)) => {
                ask(&server, "DELETE", &format!("{MAPS}/x"), "").await;
                assert_eq!(broken.brief().await, "DELETED x", "it goes on");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(server.open_watches(), usize::from(how == WatchBreak::Garbage));
        assert_eq!(ask(&server, "GET", MAPS, "").await.code, 200, "lists are not met");
    }
}

#[tokio::test(start_paused = true)]
async fn late_watch_sends_each_event_after_its_delay() {
    let server = ApiServer::builder().watch_buffer(1).build();
    ask(&server, "POST", MAPS, body()).await;
    let guard = server.inject(Fault::late_watch(3 * SECOND));
    let start = Instant::now();
    assert_eq!(ask(&server, "GET", MAPS, "").await.code, 200);
    let mut late = watch(&server, &format!("{MAPS}?watch=true")).await;
    assert_eq!(guard.hits(), 1, "lists are not met");
    drop(guard);
    let mut prompt = watch(&server, &format!("{MAPS}?watch=true")).await;
    assert_eq!((prompt.brief().await, start.elapsed()), ("ADDED x".into(), Duration::ZERO));
    let writes = async {
        for name in ["a", "b", "c", "d"] {
            tokio::time::sleep(SECOND).await;
            ask(&server, "POST", MAPS, json!({ "metadata": { "name": name } })).await;
            assert_eq!((prompt.brief().await, server.open_watches()), (format!("ADDED {name}"), 2));
        }
    };
    let reads = async {
        for (name, seconds) in [("x", 3), ("a", 4), ("b", 5), ("c", 6), ("d", 7)] {
            assert_eq!(late.brief().await, format!("ADDED {name}"));
            assert_eq!(start.elapsed(), seconds * SECOND, "{name}");
        }
    };
    tokio::join!(writes, reads);
}

#[tokio::test(start_paused = true)]
async fn late_watch_breaks_and_ends_in_order() {
    let server = ApiServer::new();
    let _late = server.inject(Fault::late_watch(SECOND));
    for how in [WatchBreak::End, WatchBreak::Cut, WatchBreak::Expired] {
        let start = Instant::now();
        let mut broken = watch(&server, &format!("{MAPS}?watch=true&resourceVersion=0")).await;
        ask(&server, "POST", MAPS, body()).await;
        assert_eq!(server.break_watches(|_| true, how), 1);
        ask(&server, "DELETE", &format!("{MAPS}/x"), "").await;
        assert_eq!((broken.brief().await, start.elapsed()), ("ADDED x".into(), SECOND));
        match (how, broken.next().await) {
            (WatchBreak::End, Next::End) => {}
            (WatchBreak::Cut, Next::Junk(_)) => assert_eq!(broken.next().await, Next::Broken),
            (WatchBreak::Expired, Next::Event(..)) => assert_eq!(broken.next().await, Next::End),
            other => panic!("{other:?}"),
        }
    }
    let start = Instant::now();
    let mut short = watch(&server, &format!("{MAPS}?watch=true&timeoutSeconds=7")).await;
    assert_eq!((short.next().await, start.elapsed()), (Next::End, 7 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn rules_match_by_request_and_user() {
    let server = ApiServer::new();
    ask(&server, "POST", MAPS, body()).await;
    let x = format!("{MAPS}/x");
    let code = async |user: &str, method: &str, path: &str| {
        read(send(&server, user, method, path, body()).await.expect("an answer")).await.code
    };
    for (fault, met, spared) in [
        (Fault::status(503).user("a"), ("a", "GET", MAPS), ("b", "GET", MAPS)),
        (Fault::status(503).verb("get"), ("a", "GET", x.as_str()), ("a", "GET", MAPS)),
        (Fault::status(503).resource("configmaps"), ("a", "GET", MAPS), ("a", "GET", "/api/v1/pods")),
        (Fault::status(503).namespace("default"), ("a", "GET", MAPS), ("a", "GET", "/api/v1/configmaps")),
        (Fault::status(503).name("x"), ("a", "PUT", &x), ("a", "GET", MAPS)),
        (Fault::status(503).writes(), ("a", "PUT", &x), ("a", "GET", &x)),
        (Fault::status(503).path(|it| it.ends_with("/x")), ("a", "GET", &x), ("a", "GET", MAPS)),
    ] {
        let guard = server.inject(fault.clone());
        assert_eq!(code(met.0, met.1, met.2).await, 503, "{fault:?} {met:?}");
        assert_eq!(code(spared.0, spared.1, spared.2).await, 200, "{fault:?} {spared:?}");
        assert_eq!(guard.hits(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn rules_end_by_count_guard_or_at_once() {
    let server = ApiServer::new();
    let code = async || ask(&server, "GET", MAPS, "").await.code;
    let counted = server.inject(Fault::status(503).times(2));
    assert_eq!([code().await, code().await, code().await], [503, 503, 200]);
    assert_eq!(counted.hits(), 2);
    let guarded = server.inject(Fault::status(500));
    assert_eq!(code().await, 500);
    drop(guarded);
    assert_eq!(code().await, 200);
    let _cleared = server.inject(Fault::status(500));
    server.clear_faults();
    assert_eq!(code().await, 200);

    let start = Instant::now();
    let _first = server.inject(Fault::delay_before(SECOND));
    let _second = server.inject(Fault::status(503));
    let never = server.inject(Fault::status(500));
    assert_eq!(
        (code().await, start.elapsed(), never.hits()),
        (503, SECOND, 0),
        "all apply, up to the one that ends it"
    );
}
