//! Over real HTTP, byte by byte.

use std::time::Duration;

use fake_kube_apiserver::{ApiServer, Endpoint, Fault, WatchBreak};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::MAPS;

const LIMIT: Duration = Duration::from_secs(10);

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("in time")
}

/// Sends raw bytes. Returns the answer until the server closes the connection.
async fn raw(endpoint: &Endpoint, bytes: &str) -> String {
    let mut stream = TcpStream::connect(endpoint.addr()).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    until_closed(stream).await
}

async fn until_closed(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    // A reset is a close too.
    let _ = within(stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn post(name: &str) -> String {
    let body = json!({ "metadata": { "name": name } }).to_string();
    format!("POST {MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn dropped_connection_closes_without_an_answer() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let guard = server.inject(Fault::drop_before());
    assert_eq!(raw(&endpoint, &post("x")).await, "");
    drop(guard);
    assert!(server.objects(MAPS).is_empty());
    let _guard = server.inject(Fault::drop_after());
    assert_eq!(raw(&endpoint, &post("x")).await, "");
    assert_eq!(server.objects(MAPS).len(), 1);
}

#[tokio::test]
async fn request_is_cancelled_when_client_disconnects() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let guard = server.inject(Fault::hang_before());
    let mut stream = TcpStream::connect(endpoint.addr()).await.unwrap();
    stream.write_all(post("x").as_bytes()).await.unwrap();
    within(async {
        while guard.hits() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(stream);
    endpoint.shutdown().await;
    assert!(server.objects(MAPS).is_empty());
    assert_eq!(server.write_log()[0].completed, None);
}

#[tokio::test]
async fn malformed_requests_and_large_bodies_are_refused() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    assert!(raw(&endpoint, "nonsense\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    let big = format!("POST {MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n{{");
    assert!(raw(&endpoint, &big).await.starts_with("HTTP/1.1 413"));
    let short = format!("POST {MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{{");
    let mut stream = TcpStream::connect(endpoint.addr()).await.unwrap();
    stream.write_all(short.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(until_closed(stream).await, "");
    assert!(server.objects(MAPS).is_empty());
}

/// Opens a watch byte by byte and reads its head.
async fn raw_watch(endpoint: &Endpoint) -> TcpStream {
    let mut stream = TcpStream::connect(endpoint.addr()).await.unwrap();
    stream.write_all(format!("GET {MAPS}?watch=1 HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
    let mut head = [0; 15];
    within(stream.read_exact(&mut head)).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    stream
}

/// Reads until `end` has arrived.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(end) {
        let mut part = [0; 1024];
        let length = within(stream.read(&mut part)).await.unwrap();
        assert_ne!(length, 0, "closed after {seen:?}");
        seen.push_str(std::str::from_utf8(&part[..length]).unwrap());
    }
    seen
}

#[tokio::test]
async fn endpoint_closes_its_connections_when_it_ends() {
    let server = ApiServer::new();
    let (first, second) = (server.serve().await.unwrap(), server.serve().await.unwrap());
    assert_ne!(first.addr(), second.addr());
    let (watching, idle) = (raw_watch(&first).await, TcpStream::connect(first.addr()).await.unwrap());
    let other = raw_watch(&second).await;
    assert_eq!(server.open_watches(), 2);
    let addr = first.addr();
    first.shutdown().await;
    assert_eq!(server.open_watches(), 1, "the watch has ended with its connection");
    until_closed(watching).await;
    assert_eq!(until_closed(idle).await, "");
    assert!(TcpStream::connect(addr).await.is_err());
    drop(second);
    until_closed(other).await;
    assert_eq!(server.open_watches(), 0);
}

#[tokio::test]
async fn watch_can_end_cleanly_or_mid_line() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let mut ended = raw_watch(&endpoint).await;
    assert_eq!(server.break_watches(|_| true, WatchBreak::End), 1);
    read_until(&mut ended, "0\r\n\r\n").await;
    let cut = raw_watch(&endpoint).await;
    assert_eq!(server.break_watches(|_| true, WatchBreak::Cut), 1);
    let rest = until_closed(cut).await;
    assert_eq!((rest.contains("MODIFIED"), rest.contains("0\r\n\r\n")), (true, false), "{rest:?}");
}

#[tokio::test]
async fn watch_lines_are_sent_immediately() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let mut stream = raw_watch(&endpoint).await;
    server.put("b", &format!("{MAPS}/x"), json!({})).unwrap();
    let seen = read_until(&mut stream, "}\n\r\n").await;
    assert!(seen.contains("transfer-encoding: chunked"), "{seen}");
    let line = seen.lines().find(|it| it.starts_with('{')).expect("an event");
    let event: Value = serde_json::from_str(line).unwrap();
    assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("x")));
}
