//! Servers in the place of the API server.

use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::json;
use std::{net::SocketAddr, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer},
};

/// What a server does with a request.
#[derive(Clone, Copy)]
pub(crate) enum Manner {
    /// Answers so.
    Says(fn(&str) -> String),
    /// Never answers.
    Hangs,
    /// Ends the connection.
    Ends,
    /// Answers the first bytes, whatever they are, as web servers do without TLS.
    Complains,
}

pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    _serving: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(manner: Manner) -> Self {
        Self::listen(manner, None).await
    }

    /// One whose certificate no authority has signed.
    pub(crate) async fn untrusted() -> Self {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["127.0.0.1".into()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key.into())
            .unwrap();
        Self::listen(Manner::Hangs, Some(Arc::new(config).into())).await
    }

    async fn listen(manner: Manner, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let tls = tls.clone();
                connections.spawn(async move {
                    match tls {
                        None => serve(stream, manner).await,
                        Some(tls) => {
                            // It fails, since the client does not trust the certificate.
                            let _ = tls.accept(stream).await;
                        }
                    }
                });
            }
        });
        Self { addr, _serving: serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, manner: Manner) {
    let mut head = Vec::new();
    if matches!(manner, Manner::Complains) {
        let _ = stream.read_buf(&mut head).await;
        let _ = stream.write_all(answer("400 Bad Request", "", "").as_bytes()).await;
        return;
    }
    while !head.windows(4).any(|it| it == b"\r\n\r\n") {
        match stream.read_buf(&mut head).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    let head = String::from_utf8_lossy(&head);
    let line = head.lines().next().unwrap_or_default();
    match manner {
        Manner::Says(answer) => {
            let _ = stream.write_all(answer(line).as_bytes()).await;
            let _ = stream.shutdown().await;
            // What is unread would reset the connection.
            let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        }
        Manner::Hangs => std::future::pending().await,
        Manner::Ends | Manner::Complains => {}
    }
}

/// An answer of this type, with more headers.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// A refusal of the API server.
pub(crate) fn refusal(code: u16, reason: &str, message: &str) -> String {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": reason, "code": code,
    });
    answer(&format!("{code} {reason}"), "content-type: application/json\r\n", &status.to_string())
}

/// The same to a write. A read finds no lease.
pub(crate) fn refused_write(line: &str, code: u16, reason: &str, message: &str) -> String {
    if line.starts_with("GET ") {
        return refusal(404, "NotFound", r#"leases.coordination.k8s.io "app" not found"#);
    }
    refusal(code, reason, message)
}
