//! Each web server serves the probes over a real socket, in front of the in-process API server.

use actix_web::{App, HttpServer};
use kube_leader_gate::{
    Election, Identity, LeaseTiming,
    health::Health,
    testing::{ApiServer, Fault},
};
use std::{
    future::{Future, IntoFuture},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use test_support::{
    sidecar::callers::{Answer, ask, request},
    wait::{until, within},
};
use tokio::{net::TcpListener, task::JoinSet};
use web_servers::{actix, axum, health::probes_of, hyper};

/// Far longer than it takes, so that a busy machine does not fail a test.
const PATIENCE: Duration = Duration::from_secs(30);

const NOT_BEGUN: &str = "the election of this process has not begun: its code must call `run`, `run_until`, \
                         `run_while_leading` or `start`\n";

/// Plays a replica's life, and asks the probes that `serve` serves.
async fn serves_the_probes<F>(serve: impl FnOnce(std::net::TcpListener, Health) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let refused = server.inject(Fault::forbidden().resource("leases"));
    let election = Election::builder("default", "operator")
        .identity(Identity::new("a").unwrap())
        .timing(LeaseTiming::fast())
        .build(&endpoint.config("a"))
        .unwrap();
    let filled = Arc::new(AtomicBool::new(false));
    let health = probes_of(election.candidate(), filled.clone());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let mut serving = JoinSet::new();
    serving.spawn(serve(listener, health));

    // Built, and not driven.
    assert_eq!(text(&get(address, "/livez").await), (200, "ok\n"));
    let both = format!("{NOT_BEGUN}the caches are not filled yet\n");
    assert_eq!(text(&get(address, "/readyz").await), (503, &*both));
    assert_eq!(page(&get(address, "/leader").await)["trouble"], NOT_BEGUN.trim_end());

    // Without the permission.
    filled.store(true, Ordering::SeqCst);
    let running = election.start();
    until(PATIENCE, "the calls fail", || running.candidate().trouble().is_some()).await;
    let answer = get(address, "/readyz").await;
    assert_eq!(text(&answer).0, 503);
    assert!(answer.body.starts_with("the election is in trouble: lease calls fail: "), "{}", answer.body);
    assert_eq!(text(&get(address, "/livez").await), (200, "ok\n"));

    drop(refused);
    within(PATIENCE, "the candidate leads", running.candidate().elected()).await;
    assert_eq!(text(&get(address, "/readyz?verbose").await), (200, "ok\n"));
    let leader = page(&get(address, "/leader").await);
    assert_eq!((&leader["holder"], &leader["is_leader"]), (&"a".into(), &true.into()));

    for path in ["/livez", "/readyz", "/leader"] {
        let head = ask(address, request("HEAD", path, "")).await;
        assert_eq!((head.code, &*head.body), (200, ""), "{path}");
        assert_eq!(ask(address, request("POST", path, "")).await.code, 405, "{path}");
    }
    let head = ask(address, request("HEAD", "/livez", "")).await;
    assert_eq!(head.headers["content-length"], "3", "as of a GET");
    assert_eq!(get(address, "/other").await.code, 404);

    running.stop().await;
    let ended = "the leader election has ended; restart the process to contend again\n";
    assert_eq!(text(&get(address, "/livez").await), (503, ended));
    assert_eq!(text(&get(address, "/readyz").await), (503, ended));
    assert_eq!(page(&get(address, "/leader").await)["is_leader"], false);
    assert!(serving.try_join_next().is_none(), "it serves on");
}

async fn get(address: SocketAddr, path: &str) -> Answer {
    ask(address, request("GET", path, "")).await
}

/// The status and the body of a probe's answer.
fn text(answer: &Answer) -> (u16, &str) {
    assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8", "{answer:?}");
    (answer.code, &answer.body)
}

fn page(answer: &Answer) -> serde_json::Value {
    assert_eq!((answer.code, answer.headers["content-type"].as_bytes()), (200, &b"application/json"[..]));
    answer.json()
}

#[tokio::test]
async fn axum_serves_the_probes() {
    serves_the_probes(|listener, health| {
        let listener = TcpListener::from_std(listener).unwrap();
        let serving = ::axum::serve(listener, axum::probes(health)).into_future();
        async move { serving.await.unwrap() }
    })
    .await;
}

#[tokio::test]
async fn actix_serves_the_probes() {
    serves_the_probes(|listener, health| {
        let app = move || App::new().service(actix::probes(health.clone()));
        let server = HttpServer::new(app).workers(1).disable_signals().listen(listener).unwrap().run();
        async move { server.await.unwrap() }
    })
    .await;
}

#[tokio::test]
async fn hyper_serves_the_probes() {
    serves_the_probes(|listener, health| {
        let listener = TcpListener::from_std(listener).unwrap();
        async move { hyper::serve(listener, health).await.unwrap() }
    })
    .await;
}

/// A reader copies the code from the guide, or from the file that the guide names.
#[test]
fn guide_shows_or_names_the_tested_code() {
    let guide = include_str!("../../../docs/GETTING_STARTED.md");
    let mut blocks = guide.split("```rust\n").skip(1).filter_map(|it| it.split_once("```"));
    // Without the comments, which the guide has in its text.
    let code = include_str!("../src/health.rs").split_inclusive('\n').filter(|line| !line.starts_with("//"));
    let code: String = code.collect();
    assert!(blocks.any(|(block, _)| block.trim() == code.trim()), "the guide should have\n{code}");
    for server in ["actix", "hyper"] {
        assert!(guide.contains(&format!("`crates/web-servers/src/{server}.rs`")), "{server}");
    }
    let route = r#".route_service("/livez", health.clone())"#;
    assert!(guide.contains(route) && include_str!("../src/axum.rs").contains(route));
}
