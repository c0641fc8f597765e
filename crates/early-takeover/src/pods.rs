//! Asks the API server for pods.

use futures_util::{StreamExt, stream::BoxStream};
use http::Request;
use kube_leader_gate::kube_client::{
    Client, Error,
    client::AuthError,
    core::{Status, WatchEvent},
};
use serde_json::Value;
use std::{error::Error as _, fmt, time::Duration};
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

pub(crate) type Events = BoxStream<'static, Result<WatchEvent<Value>, CallError>>;

/// A call that failed.
#[derive(Debug)]
pub(crate) struct CallError {
    /// The word for the log.
    pub(crate) kind: &'static str,
    message: String,
}

// === impl Pods ===

impl Pods {
    pub(crate) fn new(client: Client, namespace: &str, patience: Duration) -> Self {
        Self { client, path: format!("/api/v1/namespaces/{namespace}/pods"), patience }
    }

    /// Reads the pod. None if it is gone.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<Value>, CallError> {
        let request = request(&format!("{}/{name}", self.path))?;
        match self.in_time(self.client.request_text(request)).await {
            Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| CallError::garbage(&error)),
            Err(error) if error.kind == NOT_FOUND => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Watches the pod, from its present state on.
    pub(crate) async fn watch(&self, name: &str) -> Result<Events, CallError> {
        let seconds = SECONDS + fastrand::u64(..SECONDS);
        let query = format!("watch=true&timeoutSeconds={seconds}&fieldSelector=metadata.name%3D{name}");
        let request = request(&format!("{}?{query}", self.path))?;
        let events = self.in_time(self.client.request_events(request)).await?;
        // The server's end of the watch may be lost with the connection.
        let events = events.take_until(sleep(Duration::from_secs(seconds) + OVERDUE));
        Ok(events.map(|event| event.map_err(|error| CallError::of(&error))).boxed())
    }

    async fn in_time<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, CallError> {
        let answer = timeout(self.patience, call).await;
        let message = || format!("no answer within {:?}", self.patience);
        let answer = answer.map_err(|_| CallError { kind: "timeout", message: message() })?;
        answer.map_err(|error| CallError::of(&error))
    }
}

fn request(uri: &str) -> Result<Request<Vec<u8>>, CallError> {
    let request = Request::get(uri).header("accept", "application/json").body(Vec::new());
    request.map_err(|error| CallError { kind: "refused", message: error.to_string() })
}

// === impl CallError ===

const NOT_FOUND: &str = "not found";
const FORBIDDEN: &str = "forbidden";

impl CallError {
    fn of(error: &Error) -> Self {
        match error {
            Error::Api(status) => Self::refusal(status),
            Error::SerdeError(error) => Self::garbage(error),
            error => {
                let message = without_secrets(error).map_or_else(|| chain(error), str::to_owned);
                Self { kind: "unreachable", message }
            }
        }
    }

    /// What the API server has said instead of an answer, or in a watch.
    pub(crate) fn refusal(status: &Status) -> Self {
        let kind = match status.code {
            401 => "unauthorized",
            403 => FORBIDDEN,
            404 => NOT_FOUND,
            410 => "gone",
            _ => "refused",
        };
        let message: String = status.message.chars().take(500).collect();
        Self { kind, message: format!("{}: {message}", status.code) }
    }

    fn garbage(error: &serde_json::Error) -> Self {
        Self { kind: "garbage", message: format!("the answer is not JSON of this kind: {error}") }
    }

    /// What a user can do.
    pub(crate) fn advice(&self) -> &'static str {
        if self.kind == FORBIDDEN { "; grant it get and watch on pods, by a Role" } else { "" }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

/// What to say of an error whose text may hold a password or what a credential plugin was called with.
fn without_secrets(error: &Error) -> Option<&'static str> {
    let of_credentials = match error {
        Error::ProxyProtocolUnsupported { .. } | Error::ProxyProtocolDisabled { .. } => {
            return Some("the client cannot use its proxy");
        }
        Error::Auth(_) => true,
        Error::Service(error) => error.is::<AuthError>(),
        _ => false,
    };
    of_credentials.then_some("the client has no valid credentials")
}

/// The error and its causes.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
