//! A client of the in-process API server whose connections are pipes in memory.

use http::{
    HeaderValue, Request, Response, Uri,
    header::AUTHORIZATION,
    uri::{Authority, Scheme},
};
use hyper::{body::Incoming, rt::Executor};
use hyper_util::{
    client::legacy::{
        self,
        connect::{Connected, Connection},
    },
    rt::TokioIo,
};
use kube_client::client::Body;
use std::{
    future::ready,
    io,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex},
    sync::mpsc,
};
use tower::{Service, ServiceBuilder, service_fn};

/// The capacity of a pipe, in bytes.
pub const CAPACITY: usize = 1 << 16;

/// Receives the other end of each pipe.
pub type Pipes = mpsc::UnboundedSender<DuplexStream>;

/// The client's end.
struct Pipe(DuplexStream);

/// The service below a kube client: sends this user's requests over pipes. `executor` runs their tasks.
pub fn over<E>(
    pipes: Pipes,
    user: &str,
    executor: E,
) -> impl Service<Request<Body>, Response = Response<Incoming>, Error = legacy::Error, Future: Send> + Send + use<E>
where
    E: Executor<Pin<Box<dyn Future<Output = ()> + Send>>> + Clone + Send + Sync + 'static,
{
    let connect = service_fn(move |_: Uri| {
        let (near, far) = duplex(CAPACITY);
        let sent = pipes.send(far).map_err(io::Error::other);
        ready(sent.map(|()| TokioIo::new(Pipe(near))))
    });
    let token = HeaderValue::try_from(format!("Bearer {user}")).expect("a header");
    let addressed = move |mut request: Request<Body>| {
        let mut uri = std::mem::take(request.uri_mut()).into_parts();
        (uri.scheme, uri.authority) = (Some(Scheme::HTTP), Some(Authority::from_static("in-memory")));
        *request.uri_mut() = Uri::from_parts(uri).expect("a URI");
        request.headers_mut().insert(AUTHORIZATION, token.clone());
        request
    };
    ServiceBuilder::new().map_request(addressed).service(legacy::Client::builder(executor).build(connect))
}

// === impl Pipe ===

impl Connection for Pipe {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
