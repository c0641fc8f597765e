//! The tower service.

use super::{
    body::ResponseBody,
    future::ResponseFuture,
    settings::{Asked, Settings},
};
use crate::request::{RequestInfo, Verb};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use std::{
    error::Error,
    task::{Context, Poll},
};
use tower_service::Service;

/// The service of [`RefusalLayer`](super::RefusalLayer).
#[derive(Clone, Debug)]
pub struct Refusal<S> {
    inner: S,
    settings: Option<Settings>,
}

impl<S> Refusal<S> {
    pub(super) const fn new(inner: S, settings: Option<Settings>) -> Self {
        Self { inner, settings }
    }
}

impl<S, B, R> Service<Request<B>> for Refusal<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    R: Body<Data = Bytes> + Unpin,
{
    type Response = Response<ResponseBody<R>>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = ResponseFuture<S::Future, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let info = RequestInfo::of(&request);
        // The server deletes the objects of a collection one by one. Before a refusal, some may be gone. And a backend
        // behind `proxy` answers in its own words.
        let judged = match info.verb_on_resource() {
            Some(Verb::Connect) => info.subresource() != "proxy",
            Some(verb) => verb.changes_a_resource() && verb != Verb::DeleteCollection,
            None => false,
        };
        let asked = self.settings.as_ref().filter(|_| judged).map(|settings| Asked {
            method: request.method().clone(),
            uri: request.uri().clone(),
            upgrade: info.is_upgrade(),
            settings: settings.clone(),
        });
        ResponseFuture::new(self.inner.call(request), asked)
    }
}
