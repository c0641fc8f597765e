//! Tests of settings that only the bytes of a request show.

use super::*;
use crate::{leadership::Term, testing::ManualClock};
use http::Request;
use std::net::Ipv4Addr;
use test_support::wait::within;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpListener,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// The first line of a write that a leader sends with 8 s left.
async fn line_of_a_write(settings: impl FnOnce(ElectionBuilder) -> ElectionBuilder) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let config = Config::new(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
    let builder = Election::builder("default", "operator")
        .identity(Identity::new("a").unwrap())
        .clock(Arc::new(ManualClock::new()));
    let election = settings(builder).build(&config).unwrap();
    let client = election.client(&config).unwrap();
    election.grantor.begin();
    let deadline = election.grantor.now().saturating_add(Duration::from_secs(8));
    let _grant = election.grantor.grant(Term::new("uid", 1), deadline).unwrap();
    let writing = tokio::spawn(async move {
        let write = Request::post("/api/v1/namespaces/default/configmaps").body(b"{}".to_vec()).unwrap();
        client.request_text(write).await
    });
    let sent = async {
        let (connection, _) = listener.accept().await.unwrap();
        let mut line = String::new();
        BufReader::new(connection).read_line(&mut line).await.unwrap();
        line
    };
    let line = within(PATIENCE, "the write arrives", sent).await;
    writing.abort();
    line
}

#[tokio::test]
async fn server_time_is_bounded_unless_it_is_switched_off() {
    let (bounded, plain) = (
        "POST /api/v1/namespaces/default/configmaps?timeout=8000ms ",
        "POST /api/v1/namespaces/default/configmaps ",
    );
    let line = line_of_a_write(|builder| builder).await;
    assert!(line.starts_with(bounded), "{line}");
    let line = line_of_a_write(|builder| builder.request_deadline(true)).await;
    assert!(line.starts_with(bounded), "{line}");
    let line = line_of_a_write(|builder| builder.request_deadline(false)).await;
    assert!(line.starts_with(plain), "{line}");
}
