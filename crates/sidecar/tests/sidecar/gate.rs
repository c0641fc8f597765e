//! Reads pass, writes pass while it leads.

use crate::{
    callers::{MAPS, Raw, ask, create, get, map, request},
    process::{STEADY, Sidecar},
    upstream::{LEASE, Upstream},
    wait::until,
};
use kube_leader_gate::testing::Fault;

#[tokio::test]
async fn follower_reads_and_rejects_writes_with_status() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    assert_eq!(get(sidecar.addr, MAPS).await.code, 200);
    assert_eq!(get(sidecar.addr, "/version").await.code, 200);

    let answer = ask(sidecar.addr, request("DELETE", &format!("{MAPS}/x"), "")).await;
    let (code, reason, message) = answer.status();
    assert_eq!((code, reason.as_str()), (424, "NotLeader"));
    let begins = "write attempt rejected as client is not leader: delete configmaps \"x\" in namespace \"default\"; nothing was \
                  sent; the last known holder of the lease is \"outsider\"";
    assert!(message.starts_with(begins), "{message}");
    let ends = "or permit the request by --allow of the sidecar, if it may be sent twice";
    assert!(message.ends_with(ends), "{message}");
    assert_eq!(answer.json()["details"]["kind"], "configmaps");
    assert_eq!(answer.json()["details"]["name"], "x");
    assert!(!answer.headers.contains_key("retry-after"), "clients would send the write again");
    assert_eq!(upstream.server.write_log().len(), 1, "only the outsider's");
}

#[tokio::test]
async fn leader_writes_with_sidecar_identity() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let mut request = map("x");
    request.headers_mut().insert("user-agent", "my-app/1.0".parse().unwrap());
    request.headers_mut().insert("authorization", "Bearer mallory".parse().unwrap());
    assert_eq!(ask(sidecar.addr, request).await.code, 201);
    let log = upstream.server.write_log();
    let write = log.iter().find(|write| write.resource == "configmaps").expect("the request has arrived");
    assert_eq!((write.user.as_str(), write.user_agent.as_str()), ("a", "my-app/1.0"));
}

#[tokio::test]
async fn writes_allowed_by_options_pass_a_follower() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &["--allow", "dry-run", "--allow", "events"]).await;
    let body = r#"{"metadata":{"name":"x"}}"#;
    assert_eq!(ask(sidecar.addr, request("POST", &format!("{MAPS}?dryRun=All"), body)).await.code, 201);
    assert_eq!(ask(sidecar.addr, request("POST", "/api/v1/namespaces/default/events", body)).await.code, 201);
    assert_eq!(create(sidecar.addr, "x").await.code, 424);
}

#[tokio::test]
async fn leadership_is_handed_over() {
    let upstream = Upstream::start().await;
    let mut a = Sidecar::leading(&upstream, "a").await;
    let b = Sidecar::start(&upstream, "b", &["--timing", STEADY]).await;
    b.sees("a").await;
    assert_eq!(create(b.addr, "from-b").await.code, 424);
    assert_eq!(create(a.addr, "from-a").await.code, 201);
    a.process.signal(rustix::process::Signal::TERM);
    b.leads().await;
    assert_eq!(create(b.addr, "from-b").await.code, 201);
}

#[tokio::test]
async fn loss_cuts_off_write_with_424() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let hang = upstream.server.inject(Fault::hang_before().resource("configmaps"));
    let write = tokio::spawn(create(sidecar.addr, "x"));
    until("the request hangs", || hang.hits() == 1).await;
    upstream
        .server
        .edit("outsider", LEASE, |lease| lease["spec"]["holderIdentity"] = "outsider".into())
        .unwrap();
    let (code, reason, message) = write.await.unwrap().status();
    assert_eq!((code, reason.as_str()), (424, "LeadershipLost"));
    assert!(message.contains("a user has edited it; its outcome is unknown"), "{message}");
    let log = upstream.server.write_log();
    let write = log.iter().find(|write| write.resource == "configmaps").expect("the request has arrived");
    assert!(write.completed.is_none(), "the server was hung up on");
}

/// With the connection, a late write ends; so does the answer to one that is done. It must not look whole.
#[tokio::test]
async fn loss_breaks_off_the_answer_to_a_write() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let head = "POST /test/endless HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n";
    let mut raw = Raw::send(sidecar.addr, head).await;
    raw.read_until("\r\n\r\n").await;
    upstream
        .server
        .edit("outsider", LEASE, |lease| lease["spec"]["holderIdentity"] = "outsider".into())
        .unwrap();
    let rest = raw.rest().await;
    assert!(!rest.ends_with("0\r\n\r\n"), "{} bytes", rest.len());
}
