//! One request: judged, cleaned, sent through the gate, answered.

use crate::{
    exchange::Exchange,
    headers,
    hosts::Hosts,
    reply::{self, Answer},
    tunnel::Tunnel,
    upload::Upload,
    upstream::{self, Upstream},
};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header::CONNECTION};
use http_body::Body;
use http_body_util::Either;
use hyper::{body::Incoming, upgrade};
use kube_leader_gate::{
    Candidate, ErrLeadershipLost, ErrNotLeader, Policy, refusal::ResponseBody, request::RequestInfo,
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// A URI holds 64 KiB, and the path of the kubeconfig's server may come in front.
const LONGEST_TARGET: usize = 32 * 1024;

const CUT_OFF: &str = "the sidecar stops and cannot wait for the API server's answer; whether the API server has carried \
                       the request out is not known";

pub struct Proxy {
    pub upstream: Upstream,
    pub hosts: Hosts,
    pub candidate: Candidate,
    pub policy: Policy,
    /// Whether the kubeconfig impersonates another user.
    pub impersonates: bool,
    /// Requests without an answer get the sidecar's own answer when this is set.
    pub cut_off: CancellationToken,
}

impl Proxy {
    /// Answers a request. Each failure is an answer too.
    pub async fn handle(&self, exchange: &Exchange, request: Request<Incoming>) -> Response<Answer> {
        let request = request.map(Upload::new);
        // A caller that waits for `100 Continue` may send the body after a refusal, or not.
        let is_held_back = headers::holds_body_back(request.headers()) && !request.body().is_end_stream();
        let ends_connection = is_held_back || request.body().is_too_long();
        let mut answer = self.answer(exchange, request).await;
        if matches!(answer.body(), Either::Right(_)) {
            exchange.refuse();
            if ends_connection {
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
        }
        answer
    }

    async fn answer(&self, exchange: &Exchange, mut request: Request<Upload>) -> Response<Answer> {
        if let Err(message) = self.hosts.check(request.uri(), request.headers()) {
            tracing::warn!("{message}");
            return reply::forbidden(&message);
        }
        let target = request.uri().path_and_query().map_or("", |target| target.as_str());
        if !target.starts_with('/') || target.len() > LONGEST_TARGET || request.method() == Method::CONNECT {
            let message = format!("the request must be for a path of at most {LONGEST_TARGET} bytes");
            return reply::bad_request(&message);
        }
        let method = request.method().clone();
        headers::to_upstream(&method, request.headers_mut(), self.impersonates);
        *request.version_mut() = Version::HTTP_11;
        // Judges the request as it will be sent.
        let is_write = self.is_write(&request);
        exchange.begin(&RequestInfo::of(&request));
        let caller = headers::upgrade(request.headers()).map(|_| upgrade::on(&mut request));
        let uri = request.uri().clone();
        let outcome = tokio::select! {
            outcome = self.upstream.clone().oneshot(request) => outcome,
            () = self.cut_off.cancelled() => return reply::bad_gateway(CUT_OFF),
        };
        match outcome {
            Ok(response) => self.pass_on(exchange, response, caller, is_write),
            Err(error) => fail(&error, &RequestInfo::from_parts(&method, &uri, caller.is_some())),
        }
    }

    fn is_write(&self, request: &Request<Upload>) -> bool {
        let asked = RequestInfo::of(request);
        !asked.is_read() && !self.policy.permits(&asked)
    }

    fn pass_on(
        &self,
        exchange: &Exchange,
        mut response: Response<ResponseBody<Incoming>>,
        caller: Option<upgrade::OnUpgrade>,
        is_write: bool,
    ) -> Response<Answer> {
        let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        *response.version_mut() = Version::HTTP_11;
        headers::to_caller(response.headers_mut(), switches);
        if switches {
            let Some(caller) = caller else {
                return reply::bad_gateway(
                    "the API server switched to a protocol that the caller has not asked for",
                );
            };
            let server = upgrade::on(&mut response);
            let candidate = is_write.then(|| self.candidate.clone());
            exchange.settle(Some(Tunnel::new(caller, server, candidate)));
        } else {
            exchange.settle(None);
        }
        response.map(Either::Left)
    }
}

fn fail(error: &tower::BoxError, asked: &RequestInfo<'_>) -> Response<Answer> {
    if let Some(refused) = ErrNotLeader::find(&**error) {
        tracing::debug!("{refused}");
        return reply::not_leader(refused, asked);
    }
    if let Some(lost) = ErrLeadershipLost::find(&**error) {
        tracing::debug!("{lost}");
        return reply::leadership_lost(lost, asked);
    }
    if let Some(message) = upstream::broken_body(error) {
        tracing::debug!("{message}");
        let mut answer = reply::bad_request(&message);
        // The sidecar cannot tell where the next request begins.
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return answer;
    }
    let message = upstream::explain(error);
    tracing::warn!(verb = %asked.verb(), target = %asked.target(), "{message}");
    reply::bad_gateway(&message)
}
