//! The lock over kube-client.

use super::{Claim, LeaseEvent, LeaseName, LeaseRecord, Lock, LockError, LockErrorKind, call, lines};
use futures_util::{Stream, StreamExt, future, stream::BoxStream};
use http::{Method, StatusCode};
use kube_client::{
    Client, Config,
    client::{Body, ClientBuilder},
};
use serde_json::Value;
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, TryLockError},
};

/// A watch is asked to end after so many seconds, and up to as many again, so that watches do not end together.
const WATCH_SECONDS: u64 = 300;

/// One Lease over a kube client of its own: no gate, no retries below, nothing shared with the workload (rule S14).
///
/// The object is kept as JSON, so that fields which this crate has never heard of survive (rule S12). Answers are read up
/// to 3 MiB.
pub struct KubeLock {
    lease: LeaseName,
    path: String,
    connect: Arc<Connect>,
    client: Arc<Mutex<Client>>,
}

/// How a fresh client is made.
struct Connect {
    make: Box<dyn Fn() -> Result<Client, kube_client::Error> + Send + Sync>,
    at_work: Mutex<()>,
}

// === impl KubeLock ===

impl KubeLock {
    /// The lock on `lease`, over a client made from `config`.
    ///
    /// # Errors
    /// What [`ClientBuilder`] fails with: no TLS built in, a certificate that cannot be read, a failing credential plugin.
    ///
    /// # Panics
    /// Outside of a tokio runtime, as every kube client does.
    pub fn new(config: &Config, lease: LeaseName) -> Result<Self, kube_client::Error> {
        let mut config = config.clone();
        // A renewal that is retried below would outlive its own timeout (rule S9).
        config.default_retry = false;
        // Each call has its own time, and a watch is idle by nature.
        config.read_timeout = None;
        Self::over(lease, move || Ok(ClientBuilder::try_from(config.clone())?.build()))
    }

    /// The lock on `lease`, over clients of your own making: one now, and a fresh one after each call that was not
    /// answered in time (rule S9). They must neither retry nor share a limit or a buffer with the workload (rule S14).
    ///
    /// # Errors
    /// What `connect` fails with.
    pub fn over(
        lease: LeaseName,
        connect: impl Fn() -> Result<Client, kube_client::Error> + Send + Sync + 'static,
    ) -> Result<Self, kube_client::Error> {
        let client = Arc::new(Mutex::new(connect()?));
        let connect = Arc::new(Connect { make: Box::new(connect), at_work: Mutex::new(()) });
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", lease.namespace());
        Ok(Self { lease, path, connect, client })
    }

    async fn call(&self, method: Method, path: String, body: Option<&Value>) -> Result<Value, LockError> {
        call::call(&self.client(), method, path, body).await
    }

    fn client(&self) -> Client {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn object(&self) -> String {
        format!("{}/{}", self.path, self.lease.name())
    }
}

impl Lock for KubeLock {
    type Events = BoxStream<'static, Result<LeaseEvent, LockError>>;

    fn name(&self) -> &LeaseName {
        &self.lease
    }

    async fn get(&self) -> Result<Option<LeaseRecord>, LockError> {
        match self.call(Method::GET, self.object(), None).await {
            Ok(answer) => record(answer).map(Some),
            Err(error) if error.kind() == LockErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, claim: &Claim) -> Result<LeaseRecord, LockError> {
        let lease = claim.new_lease(self.lease.namespace(), self.lease.name());
        record(self.call(Method::POST, self.path.clone(), Some(&lease)).await?)
    }

    async fn update(&self, seen: &LeaseRecord, claim: &Claim) -> Result<LeaseRecord, LockError> {
        let lease = Value::Object(seen.with(claim).into_object());
        record(self.call(Method::PUT, self.object(), Some(&lease)).await?)
    }

    async fn watch(&self) -> Result<Self::Events, LockError> {
        let seconds = WATCH_SECONDS + fastrand::u64(..WATCH_SECONDS);
        let path = format!(
            "{}?watch=true&fieldSelector=metadata.name%3D{}&timeoutSeconds={seconds}",
            self.path,
            self.lease.name()
        );
        let body = call::open(&self.client(), Method::GET, path, None).await?;
        Ok(events(body, self.lease.name().to_owned()).boxed())
    }

    fn reconnect(&self) {
        let (connect, client, lease) = (self.connect.clone(), self.client.clone(), self.lease.clone());
        // Reading certificates or running a credential plugin may block, and cannot be stopped: one at a time.
        tokio::task::spawn_blocking(move || {
            let _one = match connect.at_work.try_lock() {
                Ok(one) => one,
                Err(TryLockError::Poisoned(one)) => one.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            match (connect.make)() {
                Ok(made) => *client.lock().unwrap_or_else(PoisonError::into_inner) = made,
                Err(error) => tracing::warn!(%lease, "no fresh client for the lease: {error}"),
            }
        });
    }
}

impl fmt::Debug for KubeLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeLock").field("lease", &self.lease).finish_non_exhaustive()
    }
}

fn record(answer: Value) -> Result<LeaseRecord, LockError> {
    LeaseRecord::from_json(answer).map_err(|error| LockError::new(LockErrorKind::Garbage, error.to_string()))
}

/// What the lines of a watch say of the lease `name`; bookmarks and other objects say nothing.
fn events(body: Body, name: String) -> impl Stream<Item = Result<LeaseEvent, LockError>> + Send {
    lines::lines(body)
        .filter_map(move |line| future::ready(line.and_then(|line| event(&line, &name)).transpose()))
}

fn event(line: &[u8], name: &str) -> Result<Option<LeaseEvent>, LockError> {
    let garbage = |message| LockError::new(LockErrorKind::Garbage, message);
    let mut event: Value = serde_json::from_slice(line)
        .map_err(|error| garbage(format!("a line of the watch is not JSON: {error}")))?;
    let object = event.get_mut("object").map(Value::take).unwrap_or_default();
    let wrap: fn(LeaseRecord) -> LeaseEvent = match event.get("type").and_then(Value::as_str) {
        Some("ADDED" | "MODIFIED") => LeaseEvent::Seen,
        Some("DELETED") => LeaseEvent::Deleted,
        Some("BOOKMARK") => return Ok(None),
        Some("ERROR") => {
            let code = object.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
            let status = code.and_then(|code| StatusCode::from_u16(code).ok());
            let message =
                object.get("message").and_then(Value::as_str).unwrap_or("an error without a message");
            return Err(LockError::new(status.map_or(LockErrorKind::Refused, call::kind), message));
        }
        _ => return Err(garbage("a line of the watch has no known type".into())),
    };
    let record = record(object)?;
    // A server that ignores the selector must not make another lease this one.
    Ok((record.name() == name).then(|| wrap(record)))
}

#[cfg(all(test, feature = "test-util"))]
#[path = "kube_lock_tests.rs"]
mod tests;
