//! A hop that does nothing but pass on, with hyper's own server and client, as a program of fifty lines does.

use crate::hops::Outcome;
use http::{
    Request, Response, Uri,
    header::HOST,
    uri::{Authority, Scheme},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use tokio::net::TcpListener;

pub(crate) async fn serve(upstream: Authority) -> Outcome<()> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("serving on http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (client, upstream) = (client.clone(), upstream.clone());
        tokio::spawn(async move {
            let answer = service_fn(|request| pass_on(client.clone(), upstream.clone(), request));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

async fn pass_on(
    client: Client<HttpConnector, Incoming>,
    upstream: Authority,
    mut request: Request<Incoming>,
) -> Outcome<Response<Incoming>> {
    let mut uri = request.uri().clone().into_parts();
    (uri.scheme, uri.authority) = (Some(Scheme::HTTP), Some(upstream));
    *request.uri_mut() = Uri::from_parts(uri)?;
    request.headers_mut().remove(HOST);
    Ok(client.request(request).await?)
}
