//! One request: judged, cleaned, sent through the gate, answered.

use crate::{
    exchange::Exchange,
    headers,
    hosts::Hosts,
    recurring::Recurring,
    relist::{Gains, Relisted, end_watch},
    reply::{self, Answer},
    tunnel::Tunnel,
    unanswered,
    upload::Upload,
    upstream::{Servers, Upstream},
};
use http::{
    HeaderValue, Method, Request, Response, StatusCode, Version,
    header::{CONNECTION, TRANSFER_ENCODING, UPGRADE},
};
use http_body::Body;
use http_body_util::Either;
use hyper::{body::Incoming, upgrade};
use kube_leader_gate::{
    Candidate, ErrLeadershipLost, ErrNotLeader, Policy,
    extension::leaves_open,
    request::{RequestInfo, Verb},
};
use kube_leader_gate_fence::ErrFenced;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A URI holds 64 KiB, and the path of the kubeconfig's server may come in front.
const LONGEST_TARGET: usize = 32 * 1024;

const CUT_OFF: &str = "the sidecar stops and cannot wait for the API server's answer; whether the API server has carried \
                       the request out is not known";
const NOT_ASKED: &str = "the API server switched to a protocol that the caller has not asked for";
const IMPERSONATES: &str =
    "the sidecar relies on a fence, which does not judge what is asked as another user (Impersonate-*)";

/// The API server is away, for example.
static UNANSWERED: Recurring = Recurring::new("requests to the API server have no answer");
/// It never settles: other requests are accepted at the same time.
static REFUSED: Recurring = Recurring::new("requests with a Host or an origin that is not accepted");

pub(crate) struct Proxy {
    pub(crate) upstream: Upstream,
    pub(crate) hosts: Hosts,
    pub(crate) candidate: Candidate,
    pub(crate) policy: Policy,
    pub(crate) servers: Arc<Servers>,
    /// Whether a fence judges the writes.
    pub(crate) is_fenced: bool,
    /// None if a gain ends no watch.
    pub(crate) gains: Option<Gains>,
    /// Requests without an answer get the sidecar's own answer when this is set.
    pub(crate) cut_off: CancellationToken,
}

impl Proxy {
    /// Answers a request. Each failure is an answer too.
    pub(crate) async fn handle(&self, exchange: &Exchange, request: Request<Incoming>) -> Response<Answer> {
        let request = request.map(Upload::new);
        // A caller that waits for `100 Continue` may send the body after a refusal, or not.
        let is_held_back = !request.body().is_end_stream() && headers::holds_body_back(request.headers());
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
            REFUSED.raise(&message);
            return reply::forbidden(&message);
        }
        if self.is_fenced && headers::impersonates(request.headers()) {
            return reply::forbidden(IMPERSONATES);
        }
        let target = request.uri().path_and_query().map_or("", |target| target.as_str());
        let is_path = target.starts_with('/') && target.len() <= LONGEST_TARGET;
        // The answer to a `TRACE` would show the sidecar's own credentials.
        let is_for_proxies = [Method::CONNECT, Method::TRACE].contains(request.method());
        let has_body = !request.body().is_end_stream();
        if !is_path || is_for_proxies || has_body && headers::is_packed(request.headers()) {
            let message = format!(
                "the request must be for a path of at most {LONGEST_TARGET} bytes, not CONNECT or TRACE, and have no \
                 Transfer-Encoding but chunked"
            );
            return reply::bad_request(&message);
        }
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let is_old = request.version() < Version::HTTP_11;
        if request.headers().contains_key(UPGRADE) {
            let plain = RequestInfo::from_parts(&method, &uri, false);
            let has_none = has_no_upgrade(&plain);
            if has_none
                && !is_old
                && plain.verb() == Verb::Watch
                && headers::upgrade(request.headers()).is_some()
            {
                return reply::no_tunnel();
            }
            if has_none || is_old {
                request.headers_mut().remove(UPGRADE);
            }
        }
        let upgrades = headers::to_upstream(&method, request.headers_mut(), self.servers.impersonate());
        if has_body && request.body().size_hint().exact().is_none() {
            // By itself hyper drops the body of a `GET` or `HEAD` without a length.
            request.headers_mut().insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        *request.version_mut() = Version::HTTP_11;
        // Judges the request as it will be sent.
        let asked = RequestInfo::from_parts(&method, &uri, upgrades);
        let is_read = asked.is_read();
        let needs_leadership = !is_read && !self.policy.permits(&asked);
        // A gain before the answer counts too.
        let gain = self.gains.as_ref().filter(|_| asked.verb() == Verb::Watch).map(|gains| gains.next(&uri));
        exchange.begin(&asked);
        let caller = upgrades.then(|| upgrade::on(&mut request));
        let mut response = match exchange.send(request).await {
            None => return reply::no_answer(is_read, true, CUT_OFF),
            Some(Ok(response)) => {
                UNANSWERED.settle();
                response
            }
            Some(Err(error)) => {
                return fail(&error, &RequestInfo::from_parts(&method, &uri, caller.is_some()));
            }
        };
        if !is_read && leaves_open(response.status()) {
            return reply::unknown(response).await;
        }
        let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        *response.version_mut() = Version::HTTP_11;
        headers::to_caller(response.headers_mut(), switches);
        if switches {
            let Some(caller) = caller.filter(|_| response.headers().contains_key(UPGRADE)) else {
                return reply::no_answer(is_read, true, NOT_ASKED);
            };
            let server = upgrade::on(&mut response);
            let candidate = needs_leadership.then(|| self.candidate.clone());
            exchange.open(Tunnel::new(caller, server, candidate));
        }
        let response = match gain {
            Some(gain) => end_watch(response, gain),
            None => response.map(Relisted::from),
        };
        response.map(Either::Left)
    }
}

/// Whether the request reads a resource itself, where a kube-apiserver grants no upgrade except to a watch. A server need not
/// grant it (RFC 9110, 7.8), and the sidecar does not. So a follower can watch custom resources, although the gate takes such a
/// wish for a write if it does not know the resource. And each watch is one that the sidecar can end at a gain.
fn has_no_upgrade(plain: &RequestInfo<'_>) -> bool {
    plain.is_read() && !plain.resource().is_empty() && plain.subresource().is_empty()
}

fn fail(error: &tower::BoxError, asked: &RequestInfo<'_>) -> Response<Answer> {
    if let Some(refused) = ErrNotLeader::find(&**error) {
        tracing::debug!("{refused}");
        return reply::not_leader(refused, asked);
    }
    if let Some(fenced) = ErrFenced::find(&**error) {
        return reply::fenced(fenced, asked);
    }
    if let Some(lost) = ErrLeadershipLost::find(&**error) {
        tracing::debug!("{lost}");
        return reply::leadership_lost(lost, asked);
    }
    if let Some(message) = unanswered::broken_body(error) {
        tracing::debug!("{message}");
        let mut answer = reply::bad_request(&message);
        // The sidecar cannot tell where the next request begins.
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return answer;
    }
    let (is_sent, message) = unanswered::explain(error);
    UNANSWERED.raise(format_args!("{} {}: {message}", asked.verb(), asked.target()));
    reply::no_answer(asked.is_read(), is_sent, &message)
}
