//! The liveness probe, and the page that names the leader.

use crate::support::{
    FIRST, LEASE, SOON, build, builder, candidate, free, leading, leads_by, pass, until, write,
};
use bytes::Bytes;
use futures_util::stream::{self, Pending};
use http::{
    Method, Request, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE},
};
use http_body_util::{BodyExt, Empty};
use hyper::server::conn::http1;
use hyper_util::{client::legacy, rt::TokioExecutor, rt::TokioIo};
use kube_client::client::Body;
use kube_leader_gate::{
    Candidate,
    health::Health,
    lease::{ErrLock, ErrLockKind, LeaseEvent, LeaseRecord, LeaseUpdate, Lock},
    testing::{ApiServer, Fault, ManualClock},
};
use serde_json::Value;
use std::{
    convert::Infallible,
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};
use tokio::net::TcpListener;
use tower::{Service, ServiceExt};

const TOLERATED: Duration = Duration::from_secs(20);

async fn ask(leader: &Candidate, method: Method, path: &str) -> Response<String> {
    let request = Request::builder().method(method).uri(path).body(()).unwrap();
    let mut health = Health::new(leader.clone(), TOLERATED);
    ServiceExt::<Request<()>>::ready(&mut health).await.unwrap().call(request).await.unwrap()
}

async fn probe(leader: &Candidate) -> (u16, String) {
    let response = ask(leader, Method::GET, "/livez").await;
    (response.status().as_u16(), response.into_body())
}

async fn page(leader: &Candidate) -> Value {
    let response = ask(leader, Method::GET, "/leader").await;
    assert_eq!(response.status(), 200);
    serde_json::from_str(response.body()).unwrap()
}

fn healthy() -> (u16, String) {
    (200, "ok\n".to_owned())
}

/// A restart does not mend an outage: it would empty the caches of each replica, and of a leader first.
#[tokio::test(start_paused = true)]
async fn candidates_are_healthy_and_not_ready_in_an_outage() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let b = candidate(&server, "b").start();
    until(SOON, "b knows the leader", || b.candidate().holder().is_some()).await;
    let outage = server.inject(Fault::status(503));
    pass(Duration::from_secs(600)).await;
    assert!(!a.candidate().is_leader());
    for it in [a.candidate(), b.candidate()] {
        assert_eq!(probe(it).await, healthy(), "{}", it.identity());
        assert_eq!(ask(it, Method::GET, "/readyz").await.status(), 503, "{}", it.identity());
    }
    drop(outage);
    let leads = || [&a, &b].iter().any(|it| it.candidate().is_leader());
    until(Duration::from_secs(30), "one of them leads again", leads).await;
    let ready = async |it: &Candidate| ask(it, Method::GET, "/readyz").await.status() == 200;
    pass(Duration::from_secs(5)).await;
    assert!(ready(a.candidate()).await && ready(b.candidate()).await);
}

/// Each read blocks the thread of the election's task until the test drops its end.
struct Blocking {
    entered: mpsc::SyncSender<()>,
    leave: Mutex<mpsc::Receiver<Infallible>>,
}

impl Lock for Blocking {
    type Events = Pending<Result<LeaseEvent, ErrLock>>;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        let _ = self.entered.try_send(());
        let _ = self.leave.lock().unwrap().recv();
        Ok(None)
    }

    async fn create(&self, _: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        Err(ErrLock::new(ErrLockKind::Refused, "no"))
    }

    async fn update(&self, _: &LeaseRecord, _: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        Err(ErrLock::new(ErrLockKind::Refused, "no"))
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        Ok(stream::pending())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn follower_whose_task_is_stuck_is_unhealthy() {
    let ((entered, is_in), (hold, leave)) = (mpsc::sync_channel(1), mpsc::channel());
    let clock = ManualClock::new();
    let lock = Blocking { entered, leave: Mutex::new(leave) };
    let a = builder("a")
        .clock(Arc::new(clock.clone()))
        .build_with(|_| Ok::<_, Infallible>(lock))
        .unwrap()
        .start();
    is_in.recv_timeout(Duration::from_secs(60)).expect("the task reads the lease");
    clock.advance(Duration::from_secs(15 + 20));
    assert_eq!(probe(a.candidate()).await, healthy());
    clock.advance(Duration::from_nanos(1));
    let why = "the task of the election has not run for 35.000000001s, tolerated: 35s; restart the process\n";
    assert_eq!(probe(a.candidate()).await, (503, why.to_owned()));
    drop(hold);
    until(Duration::from_secs(60), "its task runs", || a.candidate().check(TOLERATED).is_ok()).await;
}

/// A freeze: only the clock has moved on.
#[tokio::test(start_paused = true)]
async fn process_is_unhealthy_after_freeze_until_its_task_runs() {
    let server = ApiServer::new();
    free(&server);
    let clock = ManualClock::new();
    let a = build(&server, "a", builder("a").clock(Arc::new(clock.clone()))).unwrap().start();
    leads_by(&clock, FIRST, a.candidate()).await;
    clock.advance(Duration::from_secs(15 + 20));
    assert_eq!(probe(a.candidate()).await, healthy());
    clock.advance(Duration::from_secs(2));
    let (status, why) = probe(a.candidate()).await;
    assert_eq!(status, 503);
    assert!(why.starts_with("the task of the election has not run for 3"), "{why}");
    assert!(why.ends_with(", tolerated: 35s; restart the process\n"), "{why}");
    until(Duration::from_secs(3), "the candidate leads again", || a.candidate().is_leader()).await;
    assert_eq!(probe(a.candidate()).await, healthy());
}

/// kube's client keeps some credentials for ever, while the lease calls have read theirs anew.
#[tokio::test(start_paused = true)]
async fn replica_whose_own_requests_are_all_unauthorized_is_unhealthy() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let refused = server.inject(Fault::status(401).resource("tokenreviews"));
    write(&client).await.unwrap_err();
    pass(Duration::from_secs(60)).await;
    assert_eq!(probe(a.candidate()).await, healthy(), "one answer tells little");
    write(&client).await.unwrap_err();
    let (status, why) = probe(a.candidate()).await;
    assert_eq!(status, 503);
    assert!(
        why.starts_with("the API server has answered 401 to each request of this process for 60"),
        "{why}"
    );
    assert!(a.candidate().can_write(), "the lease calls have other credentials");
    drop(refused);
    write(&client).await.unwrap();
    assert_eq!(probe(a.candidate()).await, healthy());
}

/// A program behind the proxy of the API server wants a password of its own. A restart would bring none.
#[tokio::test(start_paused = true)]
async fn answer_401_of_another_program_is_healthy() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let _refused = server.inject(Fault::status(401).path(|it| it.contains("/proxy/")));
    for _ in 0..3 {
        let request = Request::get("/api/v1/namespaces/default/services/prometheus:9090/proxy/api/v1/query");
        client.send(request.body(Body::empty()).unwrap()).await.unwrap();
        pass(Duration::from_secs(15)).await;
    }
    assert_eq!(probe(a.candidate()).await, healthy());
}

#[tokio::test(start_paused = true)]
async fn s10_ended_election_is_unhealthy() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let leader = a.candidate().clone();
    drop(a);
    until(SOON, "the election ends", || leader.check(Duration::MAX).is_err()).await;
    let why = "the leader election has ended; restart the process to contend again\n";
    assert_eq!(probe(&leader).await, (503, why.to_owned()));
    assert_eq!(page(&leader).await["is_leader"], false, "the page answers all the same");
}

/// The candidate steps down while it acquires the lease. When the release has failed, no task waits any longer.
#[tokio::test(start_paused = true)]
async fn standing_down_is_healthy_even_if_release_fails() {
    let server = ApiServer::new();
    let _slow = server.inject(Fault::delay_after(Duration::from_millis(1500)).verb("create"));
    let _hang = server.inject(Fault::hang_before().verb("update"));
    let mut a = candidate(&server, "a").start();
    let leader = a.candidate().clone();
    until(FIRST, "the candidate acquires the lease", || server.object(LEASE).is_some()).await;
    let standing_down = a.step_down(Duration::from_secs(600));
    assert!(tokio::time::timeout(Duration::from_secs(60), standing_down).await.is_err());
    assert_eq!(probe(&leader).await, healthy());
}

#[tokio::test(start_paused = true)]
async fn leader_page_names_holder_and_trouble() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let refused = server.inject(Fault::forbidden().user("b"));
    let b = candidate(&server, "b").start();
    until(SOON, "the election is in trouble", || b.candidate().trouble().is_some()).await;
    let page_of_b = page(b.candidate()).await;
    assert!(page_of_b["trouble"].as_str().unwrap().contains("forbidden"), "{page_of_b}");
    drop(refused);
    until(Duration::from_secs(5), "the trouble is over", || b.candidate().trouble().is_none()).await;
    for (leader, leads) in [(a.candidate(), true), (b.candidate(), false)] {
        let page = page(leader).await;
        assert_eq!(page["lease"], "default/operator");
        assert_eq!(page["identity"], leader.identity().as_str());
        assert_eq!(page["holder"], "a");
        assert_eq!((&page["is_leader"], &page["can_write"]), (&leads.into(), &leads.into()));
        assert_eq!(page["writes_under_way"], 0);
        assert!(page["trouble"].is_null());
        let term = leader.term().map(|term| term.to_string());
        assert_eq!(page["term"].as_str(), term.as_deref());
        assert_eq!(page["time_left_seconds"].as_f64().is_some_and(|left| 8.0 < left && left <= 10.0), leads);
    }
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let server = ApiServer::new();
    let election = candidate(&server, "a");
    let leader = election.candidate();
    for path in
        ["/livez", "/livez/", "/healthz", "/election/livez", "/leader", "/livez?verbose", "/livez/?verbose"]
    {
        assert_eq!(ask(&leader, Method::GET, path).await.status(), 200, "{path}");
    }
    for path in ["/", "//", "/ready", "/Livez", "*", "/leader/x"] {
        assert_eq!(ask(&leader, Method::GET, path).await.status(), 404, "{path}");
    }
    for path in ["/readyz", "/election/readyz"] {
        assert_eq!(ask(&leader, Method::GET, path).await.status(), 503, "{path}: it has not begun");
    }
    for method in [Method::POST, Method::DELETE, Method::OPTIONS, Method::from_bytes(b"BREW").unwrap()] {
        let response = ask(&leader, method, "/livez").await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()[ALLOW], "GET, HEAD");
    }
    let head = ask(&leader, Method::HEAD, "/livez").await;
    assert_eq!((head.status(), head.headers()["content-length"].as_bytes()), (StatusCode::OK, &b"3"[..]));
    assert_eq!(head.into_body(), "");
    assert!(server.object(LEASE).is_none(), "it sent no request");
}

/// For web servers with HTTP types of their own.
#[tokio::test(start_paused = true)]
async fn answer_without_http_types_is_the_same() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let health = Health::new(a.candidate().clone(), TOLERATED);
    for path in ["/livez", "/healthz?verbose", "/readyz", "/leader", "/x/readyz", "/", "", "?", "/livez/"] {
        let answer = health.answer(path);
        let uri = if path.starts_with('/') { path } else { "/" };
        let response = ask(a.candidate(), Method::GET, uri).await;
        assert_eq!(answer.status, response.status().as_u16(), "{path}");
        assert_eq!(answer.content_type, response.headers()[CONTENT_TYPE], "{path}");
        assert_eq!(&answer.body, response.body(), "{path}");
    }
}

#[tokio::test]
async fn hyper_serves_health_over_a_socket() {
    let server = ApiServer::new();
    let election = candidate(&server, "a");
    let health = Health::new(election.candidate(), TOLERATED);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), health.clone()));
        }
    });
    let client = legacy::Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    for (method, path, status, length, body) in [
        (Method::GET, "/livez", 200, "3", "ok\n"),
        (Method::HEAD, "/livez", 200, "3", ""),
        (Method::POST, "/livez", 405, "18", "only GET and HEAD\n"),
        (Method::GET, "/", 404, "50", "not found; there are /livez, /healthz, /readyz and /leader\n"),
    ] {
        let request = Request::builder().method(&method).uri(format!("http://{address}{path}"));
        let response = client.request(request.body(Empty::new()).unwrap()).await.unwrap();
        assert_eq!(response.status(), status, "{method} {path}");
        assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
        assert_eq!(response.headers()["cache-control"], "no-store");
        if method == Method::HEAD {
            assert_eq!(response.headers()["content-length"], length);
        }
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), body);
    }
    serving.abort();
}
