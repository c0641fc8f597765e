//! The same answers as a service for tower and for hyper.

use super::pages::{Answer, Health};
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE},
};
use std::{
    convert::Infallible,
    future::{Ready, ready},
    task::{Context, Poll},
};

/// Answers a request. It does not look at the body or the headers.
fn respond<B>(health: &Health, request: &Request<B>) -> Response<String> {
    let head = request.method() == Method::HEAD;
    if !head && request.method() != Method::GET {
        let refusal = Answer::text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
        let mut refusal = response(refusal);
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refusal;
    }
    let mut response = response(health.answer(request.uri().path()));
    if head {
        // The length of the answer to a GET.
        let length = HeaderValue::from(response.body().len());
        response.headers_mut().insert(CONTENT_LENGTH, length);
        response.body_mut().clear();
    }
    response
}

fn response(answer: Answer) -> Response<String> {
    let (status, content_type) = (answer.status_code(), HeaderValue::from_static(answer.content_type()));
    let mut response = Response::new(answer.into_body());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    // The answer may be out of date a moment later.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

impl<B> tower_service::Service<Request<B>> for Health {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        ready(Ok(respond(self, &request)))
    }
}

impl<B> hyper::service::Service<Request<B>> for Health {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn call(&self, request: Request<B>) -> Self::Future {
        ready(Ok(respond(self, &request)))
    }
}
