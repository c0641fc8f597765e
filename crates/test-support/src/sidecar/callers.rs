//! Callers of the sidecar.

use super::wait::{SOON, within};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Body, Incoming},
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::{error::Error, net::SocketAddr};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub const EXEC: &str = "/api/v1/namespaces/default/pods/web/exec?command=sh";

/// A complete answer.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub trailers: HeaderMap,
    pub body: String,
}

impl Answer {
    pub async fn read(response: Response<Incoming>) -> Self {
        let (parts, body) = response.into_parts();
        let whole = within(SOON, "the whole body", body.collect()).await.expect("a body");
        let trailers = whole.trailers().cloned().unwrap_or_default();
        let body = String::from_utf8_lossy(&whole.to_bytes()).into_owned();
        Self { code: parts.status.as_u16(), headers: parts.headers, trailers, body }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Code, reason and message of a `v1.Status`.
    pub fn status(&self) -> (u16, String, String) {
        let status = self.json();
        assert_eq!((&status["kind"], &status["apiVersion"]), (&"Status".into(), &"v1".into()), "{self:?}");
        assert_eq!((&status["status"], &status["code"]), (&"Failure".into(), &self.code.into()), "{self:?}");
        let text = |member: &str| status[member].as_str().unwrap_or_default().to_owned();
        (self.code, text("reason"), text("message"))
    }
}

/// One connection.
pub struct Caller<B = Full<Bytes>>(SendRequest<B>);

impl<B> Caller<B>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    pub async fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        // It ends with the sender and the bodies.
        tokio::spawn(connection.with_upgrades());
        Self(sender)
    }

    pub async fn send(&mut self, request: Request<B>) -> hyper::Result<Response<Incoming>> {
        self.0.ready().await?;
        self.0.send_request(request).await
    }
}

/// A request with the Host header that a client would send.
pub fn request(method: &str, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let method: Method = method.parse().unwrap();
    let request = Request::builder().method(method).uri(path).header("host", "localhost");
    request.header("content-type", "application/json").body(Full::from(body.into())).unwrap()
}

/// Sends a request over a connection of its own.
pub async fn ask(addr: SocketAddr, request: Request<Full<Bytes>>) -> Answer {
    let response = within(SOON, "an answer", async { Caller::connect(addr).await.send(request).await }).await;
    Answer::read(response.expect("an answer")).await
}

pub async fn get(addr: SocketAddr, path: &str) -> Answer {
    ask(addr, request("GET", path, "")).await
}

/// Creates a `ConfigMap`.
pub async fn create(addr: SocketAddr, name: &str) -> Answer {
    ask(addr, map(name)).await
}

pub fn map(name: &str) -> Request<Full<Bytes>> {
    request("POST", MAPS, serde_json::json!({ "metadata": { "name": name } }).to_string())
}

/// A connection, byte by byte.
pub struct Raw(pub TcpStream);

impl Raw {
    pub async fn connect(addr: SocketAddr) -> Self {
        Self(TcpStream::connect(addr).await.unwrap())
    }

    /// Connects and sends.
    pub async fn send(addr: SocketAddr, bytes: &str) -> Self {
        let mut raw = Self::connect(addr).await;
        raw.write(bytes).await;
        raw
    }

    pub async fn write(&mut self, bytes: &str) {
        self.0.write_all(bytes.as_bytes()).await.unwrap();
    }

    /// Reads until `end` has arrived. Returns all bytes so far.
    pub async fn read_until(&mut self, end: &str) -> String {
        let mut seen = String::new();
        while !seen.contains(end) {
            let mut part = [0; 4096];
            let length = within(SOON, end, self.0.read(&mut part)).await.unwrap();
            assert_ne!(length, 0, "closed after {seen:?}");
            seen.push_str(&String::from_utf8_lossy(&part[..length]));
        }
        seen
    }

    /// Reads until the other side closes.
    pub async fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        // A big answer comes in many pieces, and an endless one must end too.
        within(SOON * 5, "the connection is closed", async {
            // A reset is a close too.
            while let Ok(1..) = within(SOON, "more bytes, or the end", self.0.read_buf(&mut rest)).await {}
        })
        .await;
        String::from_utf8_lossy(&rest).into_owned()
    }
}
