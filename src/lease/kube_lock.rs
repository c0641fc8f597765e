//! The lock over kube-client.

use super::{
    error::{ErrLock, ErrLockKind},
    lock::{LeaseEvent, Lock},
    name::LeaseName,
    news,
    pool::{clients::Caller, places::Places, watches::Member},
    record::LeaseRecord,
    update::LeaseUpdate,
};
use crate::api;
use futures_util::{Stream, StreamExt, future, stream::BoxStream};
use http::Method;
use kube_client::client::Body;
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};

/// One Lease, over the clients of a [`LeasePool`](super::LeasePool).
///
/// The lock keeps the object as JSON, so that unknown fields survive (rule S12). It reads at most 3 MiB of an answer.
pub(super) struct KubeLock {
    lease: LeaseName,
    path: String,
    caller: Caller,
    /// This lock's place among the locks that share a watch.
    member: Option<Member>,
    /// The newest version of the lease that an answer to a call has shown.
    known: AtomicU64,
}

// === impl KubeLock ===

impl KubeLock {
    pub(super) fn new(lease: LeaseName, caller: Caller, member: Option<Member>) -> Self {
        let path = news::collection(lease.namespace());
        Self { lease, path, caller, member, known: AtomicU64::new(0) }
    }

    pub(super) fn places(&self) -> Places {
        self.caller.places().clone()
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<LeaseRecord, ErrLock> {
        let answer = self.caller.call(method, path, body).await?;
        let record = LeaseRecord::from_json(answer)?;
        self.known.fetch_max(record.version().unwrap_or(0), Ordering::Relaxed);
        Ok(record)
    }

    fn object(&self) -> String {
        format!("{}/{}", self.path, self.lease.name())
    }
}

impl Lock for KubeLock {
    type Events = BoxStream<'static, Result<LeaseEvent, ErrLock>>;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        match self.call(Method::GET, &self.object(), None).await {
            Ok(record) => Ok(Some(record)),
            Err(error) if error.kind() == ErrLockKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        let lease = claim.new_lease(&self.lease);
        self.call(Method::POST, &self.path, Some(&lease)).await
    }

    async fn update(&self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        self.call(Method::PUT, &self.object(), Some(&seen.with(claim).into_json())).await
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        if let Some(member) = &self.member
            && let Some(joined) = member.join(&self.lease, self.known.load(Ordering::Relaxed)).await?
        {
            return Ok(joined.events().boxed());
        }
        let body = self.caller.watch(&news::of_one(&self.lease)).await?;
        Ok(events(body, self.lease.name().to_owned()).boxed())
    }

    fn reconnect(&self) -> Option<&'static str> {
        self.caller.reconnect()
    }
}

/// Turns the lines of a watch into events of the lease `name`. Drops the events of other leases, because some servers
/// ignore the selector.
fn events(body: Body, name: String) -> impl Stream<Item = Result<LeaseEvent, ErrLock>> + Send {
    api::lines(body).filter_map(move |line| {
        let news = line.and_then(|line| news::read(&line)).transpose();
        future::ready(match news {
            Some(Ok(news)) => (news.name == name).then_some(news.event),
            Some(Err(error)) => Some(Err(error)),
            None => None,
        })
    })
}

#[cfg(all(test, feature = "test-util"))]
mod tests {
    //! Answers that no API server should give must cause errors. They never panic, and never use unbounded memory.

    use super::*;
    use crate::lease::{BoxLock, LeasePool};
    use bytes::Bytes;
    use futures_util::stream;
    use http::{Request, Response};
    use http_body::Frame;
    use http_body_util::StreamBody;
    use kube_client::Client;
    use serde_json::json;
    use std::convert::Infallible;
    use tower::service_fn;

    /// A lock whose every request gets a 200 answer with these frames.
    fn answering(frames: Vec<Vec<u8>>) -> BoxLock {
        let connect = move || {
            let frames = frames.clone();
            let answer = move |_: Request<Body>| {
                let frames = frames
                    .clone()
                    .into_iter()
                    .map(|frame| Ok::<_, Infallible>(Frame::data(Bytes::from(frame))));
                future::ready(Ok::<_, Infallible>(Response::new(StreamBody::new(stream::iter(frames)))))
            };
            Ok(Client::new(service_fn(answer), "default"))
        };
        let name = LeaseName::new("default", "operator").unwrap();
        LeasePool::over(connect).unwrap().lock(name)
    }

    fn lease(name: &str) -> Value {
        json!({ "metadata": { "name": name, "uid": "u", "resourceVersion": "1" } })
    }

    fn line(kind: &str, object: &Value) -> Vec<u8> {
        let mut line = json!({ "type": kind, "object": object }).to_string().into_bytes();
        line.push(b'\n');
        line
    }

    fn spaces() -> Vec<u8> {
        vec![b' '; api::LONGEST + 1]
    }

    async fn watched(frames: Vec<Vec<u8>>) -> Vec<Result<LeaseEvent, ErrLockKind>> {
        let events = answering(frames).watch().await.unwrap();
        events.map(|event| event.map_err(|error| error.kind())).collect().await
    }

    #[tokio::test]
    async fn an_overlong_answer_is_an_error() {
        let lease = lease("operator").to_string().into_bytes();
        assert!(answering(vec![lease.clone()]).get().await.unwrap().is_some());
        answering(vec![spaces(), lease]).get().await.unwrap_err();
    }

    #[tokio::test]
    async fn a_watch_ends_at_an_overlong_line() {
        let event = line("ADDED", &lease("operator"));
        assert!(matches!(watched(vec![event.clone()]).await[..], [Ok(LeaseEvent::Seen(_))]));
        assert_eq!(watched(vec![spaces(), event.clone(), event]).await, [Err(ErrLockKind::BadAnswer)]);
    }

    #[tokio::test]
    async fn events_of_other_leases_and_bookmarks_are_skipped() {
        let frames =
            [("ADDED", "other"), ("BOOKMARK", "operator"), ("DELETED", "other"), ("DELETED", "operator")];
        let events = watched(frames.iter().map(|(kind, name)| line(kind, &lease(name))).collect()).await;
        assert!(matches!(events[..], [Ok(LeaseEvent::Deleted(_))]), "{events:?}");
    }

    #[tokio::test]
    async fn an_error_event_says_what_is_wrong() {
        for (status, kind) in [
            (json!({ "code": 410 }), ErrLockKind::Refused),
            (json!({ "code": 403 }), ErrLockKind::Forbidden),
            (json!({ "code": 70_000 }), ErrLockKind::Refused),
            (json!({ "code": "410" }), ErrLockKind::Refused),
            (json!(null), ErrLockKind::Refused),
        ] {
            assert_eq!(watched(vec![line("ERROR", &status)]).await, [Err(kind)], "{status}");
        }
    }

    #[tokio::test]
    async fn nonsense_is_an_error() {
        let no_leases =
            ["null", "[]", "7", "{}", r#"{"metadata":[]}"#, r#"{"metadata":{"uid":1,"resourceVersion":{}}}"#];
        let bodies = no_leases.map(str::as_bytes);
        for body in
            bodies.into_iter().chain([&b""[..], b"{", b"<html>", b"\xff\xfe", b"{\"metadata\":\"\xff\"}"])
        {
            let shown = String::from_utf8_lossy(body);
            let error = answering(vec![body.to_vec()]).get().await.unwrap_err();
            assert_eq!(error.kind(), ErrLockKind::BadAnswer, "{shown}");
            let watched = watched(vec![body.to_vec(), b"\n".to_vec()]).await;
            assert_eq!(watched, [Err(ErrLockKind::BadAnswer)], "{shown}");
        }
        for object in no_leases {
            let events = watched(vec![line("MODIFIED", &serde_json::from_str(object).unwrap())]).await;
            assert_eq!(events, [Err(ErrLockKind::BadAnswer)], "{object}");
        }
        for kind in [json!(null), json!(1), json!("added")] {
            let event = json!({ "type": kind, "object": lease("operator") }).to_string() + "\n";
            assert_eq!(watched(vec![event.into_bytes()]).await, [Err(ErrLockKind::BadAnswer)], "{kind}");
        }
    }

    #[tokio::test]
    async fn a_watch_cut_within_a_line_ends() {
        let mut half = line("ADDED", &lease("operator"));
        half.pop();
        assert_eq!(watched(vec![half]).await, []);
        assert_eq!(watched(vec![]).await, []);
    }
}
