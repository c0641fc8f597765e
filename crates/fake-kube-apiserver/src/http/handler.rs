//! From a request to its answer: the log, the faults, the body, the effect, the faults again, the answer.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Body;
use serde_json::Value;

use crate::error::BoxError;
use crate::fault::effect::Effect;
use crate::http::body::ApiBody;
use crate::http::discovery::{self, Page};
use crate::http::render;
use crate::http::watch::WatchBody;
use crate::judge::log::Entry;
use crate::ops;
use crate::ops::answer::Answer;
use crate::path::Route;
use crate::request::body::{self, Payload};
use crate::request::{RequestInfo, negotiate};
use crate::server::Shared;
use crate::status::Refusal;

pub(crate) async fn handle<B>(
    shared: Arc<Shared>,
    default_user: Option<Arc<str>>,
    request: Request<B>,
) -> Result<Response<ApiBody>, BoxError>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let info = RequestInfo::new(&parts, default_user.as_deref());
    let entry = shared.state().log.arrived(&info);
    let work = serve(&shared, &info, entry, body);
    let limit = match info.timeout() {
        Ok(Some(limit)) => limit,
        Ok(None) => return work.await,
        Err(refusal) => return Ok(refuse(&shared, entry, &refusal)),
    };
    match tokio::time::timeout(limit, work).await {
        Ok(answer) => answer,
        Err(_) => Ok(refuse(&shared, entry, &Refusal::timeout())),
    }
}

async fn serve<B>(
    shared: &Arc<Shared>,
    info: &RequestInfo,
    entry: Option<Entry>,
    body: B,
) -> Result<Response<ApiBody>, BoxError>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let effects = shared.faults().meet(info);
    for effect in &effects {
        if let Some(refusal) = effect.before(info).await? {
            return Ok(refuse(shared, entry, &refusal));
        }
    }
    let answer = match body::read(info, body).await? {
        Ok(bytes) => execute(shared, info, entry, &bytes),
        Err(refusal) => refuse(shared, entry, &refusal),
    };
    let answer = disturb(answer, &effects);
    for effect in &effects {
        effect.after().await?;
    }
    Ok(answer)
}

/// Carries the request out, and records it in the log under the same lock.
fn execute(
    shared: &Arc<Shared>,
    info: &RequestInfo,
    entry: Option<Entry>,
    bytes: &Bytes,
) -> Response<ApiBody> {
    let target = match &info.route {
        Route::Resource(target) => target,
        Route::Other(path) => return page(shared, info, entry, path),
        Route::Unknown => return nowhere(shared, info, entry),
    };
    let asked = ops::check_route(info, target)
        .and_then(|()| negotiate::form(info))
        .and_then(|form| Ok((form, Payload::decode(info, &target.collection, bytes)?)));
    let (form, payload) = match asked {
        Ok(asked) => asked,
        Err(refusal) => return refuse(shared, entry, &refusal),
    };
    let mut warnings = Vec::new();
    let mut state = shared.state();
    if let Some(entry) = entry {
        state.log.decoded(entry, payload.is_dry_run(), payload.seen_version());
    }
    let answer = ops::apply(&mut state.store, info, target, payload, &mut warnings)
        .and_then(|answer| form.check(info).map(|()| answer));
    if let Some(entry) = entry {
        match &answer {
            Ok(Answer::Object(code, object)) => state.log.completed(entry, *code, Some(&object.value)),
            Ok(Answer::Json(code, _)) => state.log.completed(entry, *code, None),
            Ok(Answer::List(_) | Answer::Watch(_)) => state.log.completed(entry, 200, None),
            Err(refusal) => state.log.completed(entry, refusal.code(), None),
        }
    }
    drop(state);
    let mut response = match answer {
        Ok(Answer::Object(code, object)) => respond(code, JSON, render::object(&object, form)),
        Ok(Answer::Json(code, value)) => respond(code, JSON, value.to_string().into()),
        Ok(Answer::List(list)) => respond(200, JSON, render::list(&list, form)),
        Ok(Answer::Watch(start)) => {
            let mut response = respond(200, JSON, Bytes::new());
            *response.body_mut() = ApiBody::watch(WatchBody::new(Arc::clone(shared), start, form));
            response
        }
        Err(refusal) => refusal_response(&refusal),
    };
    for warning in warnings {
        // A header cannot carry some characters: such a warning is left out.
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {}", Value::from(warning))) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

fn page(shared: &Shared, info: &RequestInfo, entry: Option<Entry>, path: &str) -> Response<ApiBody> {
    match (discovery::page(path), info.method.as_str()) {
        (Some(Page::Text(text)), _) => respond(200, TEXT, Bytes::from_static(text.as_bytes())),
        (None, _) => nowhere(shared, info, entry),
        (Some(Page::Json(value)), "GET" | "HEAD") => respond(200, JSON, value.to_string().into()),
        (Some(_), _) => refuse(shared, entry, &Refusal::method_not_allowed()),
    }
}

/// Answers 404: below `/api` with a Status, elsewhere with a line of text.
fn nowhere(shared: &Shared, info: &RequestInfo, entry: Option<Entry>) -> Response<ApiBody> {
    let answer = refuse(shared, entry, &Refusal::no_such_path());
    if info.path.starts_with("/api/")
        || matches!(info.route, Route::Unknown) && info.path.starts_with("/apis/")
    {
        return answer;
    }
    respond(404, TEXT, Bytes::from_static(b"404 page not found\n"))
}

/// Records the refusal in the log, and makes the answer.
fn refuse(shared: &Shared, entry: Option<Entry>, refusal: &Refusal) -> Response<ApiBody> {
    if let Some(entry) = entry {
        shared.state().log.completed(entry, refusal.code(), None);
    }
    refusal_response(refusal)
}

fn refusal_response(refusal: &Refusal) -> Response<ApiBody> {
    let mut response = respond(refusal.code(), JSON, refusal.to_status().to_string().into());
    if let Some(after) = refusal.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, after.as_secs().into());
    }
    response
}

fn respond(code: u16, content_type: HeaderValue, bytes: Bytes) -> Response<ApiBody> {
    let mut response = Response::new(ApiBody::whole(bytes));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

/// Breaks a new watch after its initial events, or makes it late, if a fault says so.
fn disturb(mut answer: Response<ApiBody>, effects: &[Effect]) -> Response<ApiBody> {
    for effect in effects {
        match effect {
            Effect::BreakWatch(how) => answer.body_mut().break_off(*how),
            Effect::LateWatch(delay) => answer.body_mut().delay(*delay),
            _ => {}
        }
    }
    answer
}
