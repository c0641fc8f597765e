//! The services that are compared, and how a request goes through one.

use crate::requests::Body;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use pin_project_lite::pin_project;
use std::{
    error::Error,
    future::{Future, Ready, ready},
    hint::black_box,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};
use tower_service::Service;

/// The error of a service.
pub type BoxError = Box<dyn Error + Send + Sync>;
/// The answer of a service.
pub type Answer = Response<Full<Bytes>>;

/// The service behind the gate: it answers at once.
#[derive(Clone, Debug)]
pub struct Bare;

impl Service<Request<Body>> for Bare {
    type Response = Answer;
    type Error = BoxError;
    type Future = Ready<Result<Answer, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        black_box(&request);
        ready(Ok(Response::new(Full::default())))
    }
}

/// A layer that does nothing.
#[derive(Debug)]
pub struct NoOp<S>(pub S);

pin_project! {
    /// The future of [`NoOp`].
    #[derive(Debug)]
    pub struct NoOpFuture<F> {
        #[pin]
        inner: F,
    }
}

impl<S: Service<Request<Body>>> Service<Request<Body>> for NoOp<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = NoOpFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        NoOpFuture { inner: self.0.call(request) }
    }
}

impl<F: Future> Future for NoOpFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().inner.poll(cx)
    }
}

/// The whole call: readiness, call, poll, and the drop of the response or the error.
///
/// # Panics
/// If the service is not ready at once.
pub fn send<S: Service<Request<Body>>>(service: &mut S, request: Request<Body>) {
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    let _ = black_box(pin!(service.call(request)).poll(&mut cx));
}

/// Without the poll, in which a rejection is boxed.
///
/// # Panics
/// If the service is not ready at once.
pub fn call_only<S: Service<Request<Body>>>(service: &mut S, request: Request<Body>) {
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    black_box(&service.call(request));
}
