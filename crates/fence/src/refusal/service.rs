//! The tower layer and the service.

use super::{
    body::ResponseBody,
    client::GatedClient,
    future::{Asked, ResponseFuture, Settings},
};
use crate::{counts::Counts, definition::Fence, denial::Denial};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use kube_leader_gate::kube_client::Client;
use std::{
    error::Error,
    sync::Arc,
    task::{Context, Poll},
};
use tower_layer::Layer;
use tower_service::Service;

/// Makes [`ErrFenced`](crate::ErrFenced) of what a fence refuses; see the [module](super).
#[derive(Clone, Debug)]
pub struct RefusalLayer {
    settings: Arc<Settings>,
}

/// The service of [`RefusalLayer`].
#[derive(Clone, Debug)]
pub struct Refusal<S> {
    inner: S,
    settings: Arc<Settings>,
}

impl Fence {
    /// Recognises the refusals of this fence.
    #[must_use]
    pub fn refusals(&self) -> RefusalLayer {
        let (denial, counts) = (Denial::by(self.name()), Counts::of(self.lease()));
        RefusalLayer { settings: Arc::new(Settings { denial, counts }) }
    }
}

impl RefusalLayer {
    /// The same client, which recognises refusals. `client` has the gate: [`Election::client`] or [`Election::wrap`] has made
    /// it.
    ///
    /// [`Election::client`]: kube_leader_gate::Election::client
    /// [`Election::wrap`]: kube_leader_gate::Election::wrap
    ///
    /// # Panics
    /// Outside a tokio runtime, as every kube client does.
    #[must_use]
    pub fn wrap(&self, client: Client) -> Client {
        let (namespace, valid_until) = (client.default_namespace().to_owned(), *client.valid_until());
        Client::new(self.layer(GatedClient(client)), namespace).with_valid_until(valid_until)
    }
}

impl<S> Layer<S> for RefusalLayer {
    type Service = Refusal<S>;

    fn layer(&self, inner: S) -> Refusal<S> {
        Refusal { inner, settings: self.settings.clone() }
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
        let asked = Asked::of(&request);
        ResponseFuture::new(self.inner.call(request), asked, self.settings.clone())
    }
}
