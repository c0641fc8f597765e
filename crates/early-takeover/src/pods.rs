//! Asks the API server for pods.

use futures_util::{StreamExt, stream::BoxStream};
use http::Request;
use kube_leader_gate::{
    kube_client::{Client, Error, core::WatchEvent},
    lease::{ErrLock, ErrLockKind},
};
use serde_json::Value;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long the API server lets a watch last, at least; at most twice as long. A watch that breaks unseen ends with this.
const SECONDS: u64 = 300;

/// How much longer a watch may last on this side.
const OVERDUE: Duration = Duration::from_secs(30);

/// The pods of a namespace.
pub(crate) struct Pods {
    client: Client,
    path: String,
    /// How long a call may take.
    patience: Duration,
}

pub(crate) type Events = BoxStream<'static, Result<WatchEvent<Value>, ErrLock>>;

/// What the Role of a candidate has to grant.
pub(crate) const ROLE: &str = "grant it get and watch on pods, by a Role";

// === impl Pods ===

impl Pods {
    pub(crate) fn new(client: Client, namespace: &str, patience: Duration) -> Self {
        Self { client, path: format!("/api/v1/namespaces/{namespace}/pods"), patience }
    }

    /// Reads the pod. None if it is gone.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<Value>, ErrLock> {
        let request = request(&format!("{}/{name}", self.path))?;
        match self.in_time(self.client.request_text(request)).await {
            Ok(text) => Ok(Some(serde_json::from_str(&text).map_err(Error::SerdeError)?)),
            Err(error) if error.kind() == ErrLockKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Watches the pod, from its present state on.
    pub(crate) async fn watch(&self, name: &str) -> Result<Events, ErrLock> {
        let seconds = SECONDS + fastrand::u64(..SECONDS);
        let query = format!("watch=true&timeoutSeconds={seconds}&fieldSelector=metadata.name%3D{name}");
        let request = request(&format!("{}?{query}", self.path))?;
        let events = self.in_time(self.client.request_events(request)).await?;
        // The server's end of the watch may be lost with the connection.
        let events = events.take_until(sleep(Duration::from_secs(seconds) + OVERDUE));
        Ok(events.map(|event| event.map_err(ErrLock::from)).boxed())
    }

    async fn in_time<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, ErrLock> {
        let answer = timeout(self.patience, call).await;
        Ok(answer.map_err(|_| ErrLock::timeout(self.patience))??)
    }
}

fn request(uri: &str) -> Result<Request<Vec<u8>>, ErrLock> {
    let request = Request::get(uri).header("accept", "application/json").body(Vec::new());
    Ok(request.map_err(Error::HttpError)?)
}
