//! One scene on one server.

use std::collections::BTreeMap;

use bytes::BytesMut;
use http_body_util::BodyExt as _;
use kube_client::{Client, client::Body};
use serde_json::Value;
use tokio::time::timeout;

use crate::support::PATIENCE;

use super::{
    scene::{Action, Request, Scene, Variables},
    shape::{self, Names},
};

/// Recorded when no answer or event has come in that time. No scene expects it.
pub const SILENCE: &str = "nothing more in time";

/// A scene that is being played.
struct Run {
    client: Client,
    variables: Variables,
    names: Names,
    streams: BTreeMap<String, Stream>,
}

/// An answer's body that is still open.
struct Stream {
    body: Body,
    buffer: BytesMut,
}

/// What the server answers to each step of the scene.
pub async fn play(client: Client, scene: &Scene, variables: Variables) -> Vec<Value> {
    let mut run = Run { client, variables, names: Names::default(), streams: BTreeMap::new() };
    let mut seen = Vec::with_capacity(scene.steps.len());
    for step in &scene.steps {
        seen.push(match &step.action {
            Action::Send(request) => run.send(request.clone()).await,
            Action::Read { stream, count } => run.read(stream, *count).await,
        });
    }
    seen
}

// === impl Run ===

impl Run {
    async fn send(&mut self, request: Request) -> Value {
        let request = request.with(&self.variables);
        let response = match timeout(PATIENCE, self.client.send(message(&request))).await {
            Err(_) => return SILENCE.into(),
            Ok(Err(error)) => return format!("no answer: {error}").into(),
            Ok(Ok(response)) => response,
        };
        let (parts, body) = response.into_parts();
        let mut answer = shape::head(parts.status.as_u16(), &parts.headers);
        if let Some(stream) = request.stream
            && parts.status.is_success()
        {
            self.streams.insert(stream, Stream { body, buffer: BytesMut::new() });
            return answer;
        }
        answer["body"] = match timeout(PATIENCE, body.collect()).await {
            Err(_) => SILENCE.into(),
            Ok(Err(error)) => format!("broken: {error}").into(),
            Ok(Ok(whole)) => {
                let bytes = whole.to_bytes();
                if let Some(name) = request.keep {
                    self.keep(&name, &bytes);
                }
                self.names.body(&bytes)
            }
        };
        answer
    }

    fn keep(&mut self, name: &str, body: &[u8]) {
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        for (member, key) in [("version", "resourceVersion"), ("uid", "uid"), ("continue", "continue")] {
            let text = value["metadata"][key].as_str().unwrap_or("absent");
            self.variables.insert(format!("{name}.{member}"), text.to_owned());
        }
        self.variables.insert(name.to_owned(), value.to_string());
    }

    async fn read(&mut self, stream: &str, count: Option<usize>) -> Value {
        let Some(open) = self.streams.get_mut(stream) else {
            return "there is no such stream".into();
        };
        let mut events = Vec::new();
        while count.is_none_or(|it| events.len() < it) {
            match timeout(PATIENCE, open.line()).await {
                Ok(Some(line)) => events.extend(self.names.event(&line)),
                Ok(None) => {
                    events.push("the end".into());
                    break;
                }
                Err(_) => {
                    events.push(SILENCE.into());
                    break;
                }
            }
        }
        events.into()
    }
}

fn message(request: &Request) -> http::Request<Body> {
    let mut builder = http::Request::builder().method(request.method.as_str()).uri(&request.path);
    let typed = request.headers.iter().any(|(name, _)| name == "Content-Type");
    if !typed && !request.body.is_empty() {
        builder = builder.header("Content-Type", "application/json");
    }
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    let body = if request.body == "<no text>" {
        b"{\"\xff\xfe\"}".to_vec()
    } else {
        request.body.clone().into_bytes()
    };
    builder.body(body.into()).unwrap_or_else(|error| panic!("{} {}: {error}", request.method, request.path))
}

// === impl Stream ===

impl Stream {
    /// The next line, or `None` at the end.
    async fn line(&mut self) -> Option<BytesMut> {
        loop {
            if let Some(end) = self.buffer.iter().position(|it| *it == b'\n') {
                return Some(self.buffer.split_to(end + 1));
            }
            let Some(Ok(frame)) = self.body.frame().await else {
                return (!self.buffer.is_empty()).then(|| self.buffer.split());
            };
            self.buffer.extend_from_slice(frame.data_ref()?);
        }
    }
}
