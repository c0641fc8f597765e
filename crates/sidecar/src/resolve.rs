//! Looks up the API server's name.

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use hyper_util::client::legacy::connect::dns::Name;
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    vec,
};
use tokio::net::lookup_host;
use tower::Service;

type Found = Result<Vec<SocketAddr>, Arc<io::Error>>;

/// One look-up at a time, in a task of its own, and all connections that wait use its result. A connection that is given up
/// leaves nothing behind: a look-up that hangs occupies a thread, and the runtime has a limited number of those.
///
/// A resolver is for one name.
#[derive(Clone, Default)]
pub(crate) struct Resolver(Arc<Mutex<Option<Shared<BoxFuture<'static, Found>>>>>);

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, Result<Self::Response, io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let under_way = self.0.clone();
        let mut present = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = present.get_or_insert_with(|| {
            let looked_up = tokio::spawn(async move {
                let found = lookup_host((name.as_str(), 0)).await.map(Iterator::collect).map_err(Arc::new);
                *under_way.lock().unwrap_or_else(PoisonError::into_inner) = None;
                found
            });
            looked_up
                .map(|found| found.unwrap_or_else(|error| Err(Arc::new(io::Error::other(error)))))
                .boxed()
                .shared()
        });
        let found = found.clone();
        async move { found.await.map(Vec::into_iter).map_err(|error| io::Error::new(error.kind(), error)) }
            .boxed()
    }
}
