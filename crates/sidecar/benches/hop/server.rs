//! The server behind the hops: one read of 2 kB that costs little, and the in-process API server for the election and the
//! watches.

use crate::hops::{HOLDER, Outcome};
use bytes::Bytes;
use http::{Request, Response, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube_leader_gate::testing::ApiServer;
use serde_json::json;
use std::convert::Infallible;
use tokio::net::TcpListener;
use tower::{BoxError, ServiceExt};

/// A read of 2 kB.
pub(crate) const READ: &str = "/api/v1/namespaces/default/configmaps/read";
/// What the sidecars contend for.
pub(crate) const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/app";

type Body = UnsyncBoxBody<Bytes, BoxError>;

pub(crate) async fn serve() -> Outcome<()> {
    let server = ApiServer::new();
    let spec = json!({ "holderIdentity": HOLDER, "leaseDurationSeconds": 3600, "leaseTransitions": 1 });
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "app", "namespace": "default" }, "spec": spec,
    });
    server.put(HOLDER, LEASE, lease)?;
    let read = Bytes::from(json!({ "kind": "ConfigMap", "data": { "x": "x".repeat(2000) } }).to_string());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("serving on http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (server, read) = (server.clone(), read.clone());
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(server.clone(), read.clone(), request));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

async fn answer(
    server: ApiServer,
    read: Bytes,
    request: Request<Incoming>,
) -> Result<Response<Body>, BoxError> {
    if request.uri().path() == READ {
        let whole = Full::from(read).map_err(|never: Infallible| match never {}).boxed_unsync();
        return Ok(Response::builder().header(CONTENT_TYPE, "application/json").body(whole)?);
    }
    let answer = server.service().oneshot(request).await?;
    Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()))
}
