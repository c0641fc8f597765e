//! The audit log: the server's own record of every request, which no client can change.

use jiff::Timestamp;
use kube_leader_gate::testing::{LogTime, StoredLease, WriteRecord};
use serde::Deserialize;
use serde_json::Value;
use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
    sync::OnceLock,
    time::Duration,
};
use tokio::time::Instant;

/// Reads the log while it grows.
#[derive(Debug)]
pub struct Audit {
    file: BufReader<File>,
    /// The beginning of a line whose end is not yet written.
    line: Vec<u8>,
}

/// One stage of one request; fields as in `audit.k8s.io/v1`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    pub stage: String,
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    pub verb: String,
    pub user: User,
    #[serde(default)]
    pub user_agent: String,
    #[serde(default)]
    pub object_ref: ObjectRef,
    #[serde(default)]
    pub response_status: ResponseStatus,
    #[serde(default)]
    pub request_object: Value,
    #[serde(default)]
    pub response_object: Value,
    pub request_received_timestamp: Timestamp,
    pub stage_timestamp: Timestamp,
}

#[derive(Clone, Debug, Deserialize)]
pub struct User {
    /// Empty for a request that the server refused before it authenticated the sender.
    #[serde(default)]
    pub username: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    pub resource: String,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub api_group: String,
    pub api_version: String,
    pub subresource: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResponseStatus {
    pub code: u16,
}

impl Audit {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: BufReader::new(File::open(path)?), line: Vec::new() })
    }

    /// The events since the last call. Panics on a line that holds no event: a judge must not miss any.
    pub fn read(&mut self) -> Vec<AuditEvent> {
        let mut events = Vec::new();
        while self.file.read_until(b'\n', &mut self.line).expect("the audit log can be read") > 0 {
            if self.line.ends_with(b"\n") {
                let event = serde_json::from_slice(last_event(&self.line));
                let text = || String::from_utf8_lossy(&self.line);
                events.push(event.unwrap_or_else(|error| panic!("no audit event: {error}: {}", text())));
                self.line.clear();
            }
        }
        events
    }
}

/// A killed server may leave a torn event behind, and the next event then follows in the same line. No event contains
/// another one: the policy records no bodies except those of leases.
fn last_event(line: &[u8]) -> &[u8] {
    const BEGINNING: &[u8] = br#"{"kind":"Event","apiVersion":"audit.k8s.io/"#;
    let beginning = line.windows(BEGINNING.len()).rposition(|it| it == BEGINNING);
    &line[beginning.unwrap_or_default()..]
}

impl AuditEvent {
    /// The request as a write for the judge. `None` for a read, and for the stages before the last.
    pub fn write(&self) -> Option<WriteRecord> {
        let (verb, method) = match &*self.verb {
            "create" => ("create", "POST"),
            "update" => ("update", "PUT"),
            "patch" => ("patch", "PATCH"),
            "delete" => ("delete", "DELETE"),
            "deletecollection" => ("deletecollection", "DELETE"),
            "post" => ("post", "POST"),
            "put" => ("put", "PUT"),
            _ => return None,
        };
        if self.stage != "ResponseComplete" && self.stage != "Panic" {
            return None;
        }
        let (path, query) = self.request_uri.split_once('?').unwrap_or((&self.request_uri, ""));
        let object = &self.object_ref;
        let answer = &self.response_object;
        Some(WriteRecord {
            user: self.user.username.clone(),
            user_agent: self.user_agent.clone(),
            method: method.parse().expect("a method"),
            verb,
            path: path.to_owned(),
            group: object.api_group.clone(),
            version: object.api_version.clone(),
            resource: object.resource.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone().or_else(|| text(&answer["metadata"]["name"])),
            subresource: object.subresource.clone(),
            dry_run: query.split('&').any(|it| it.starts_with("dryRun=")),
            seen_version: text(&self.request_object["metadata"]["resourceVersion"]),
            received: moment(self.request_received_timestamp, 0),
            completed: Some(moment(self.stage_timestamp, 1)),
            status: self.response_status.code,
            lease: (answer["kind"] == "Lease").then(|| StoredLease::of(answer)),
        })
    }
}

/// The log has one clock, in microseconds. A request that arrived in the same microsecond as an effect did not arrive
/// after it.
fn moment(at: Timestamp, tie: u64) -> LogTime {
    static ORIGIN: OnceLock<(Instant, Timestamp)> = OnceLock::new();
    let (instant, timestamp) = *ORIGIN.get_or_init(|| {
        loop {
            let (instant, timestamp) = (Instant::now(), Timestamp::now());
            // Otherwise this thread stood still between the two.
            if instant.elapsed() < Duration::from_millis(1) {
                return (instant, timestamp);
            }
        }
    });
    let since = at.duration_since(timestamp);
    let length = Duration::try_from(since.abs()).expect("not negative");
    LogTime {
        at: if since.is_negative() { instant - length } else { instant + length },
        order: u64::try_from(at.as_microsecond()).expect("after 1970") * 2 + tie,
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
