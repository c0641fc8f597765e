//! The object that the workloads under a lease write, and one write.

use crate::line::TERM;
use http::{Request, header};
use kube_client::{Client, client::Body};
use kube_leader_gate::testing::ApiServer;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// A workload gives a write up after this time, and tries again.
const PATIENCE: Duration = Duration::from_secs(4);
/// One of so many writes is given up after any time before that.
const IMPATIENT: u8 = 8;

/// The object as the API server has it.
#[derive(Debug)]
pub struct Stored {
    pub version: u64,
    /// The name of the machine whose workload has written it last. Empty if no workload has.
    pub writer: String,
}

pub fn name(lease: usize) -> String {
    format!("work-{lease}")
}

pub fn path(lease: usize) -> String {
    format!("/api/v1/namespaces/default/configmaps/{}", name(lease))
}

pub fn stored(server: &ApiServer, lease: usize) -> Stored {
    let object = server.object(&path(lease)).expect("no client deletes it");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["metadata"]["resourceVersion"]).parse().expect("a version of this API server");
    Stored { version, writer: text(&object["data"]["writer"]) }
}

/// Writes the object once. `writer` is the name of the machine. `term` is the token of the term that this work is for, if it is for one.
pub async fn write(client: Client, writer: String, lease: usize, term: Option<u64>, number: u64) {
    let data = format!(r#"{{"data":{{"number":"{number}","writer":"{writer}"}}}}"#);
    let request = Request::patch(path(lease))
        .header(header::CONTENT_TYPE, "application/merge-patch+json")
        .header(TERM, term.unwrap_or(0))
        .body(Body::from(data.into_bytes()))
        .expect("a request");
    // A follower's write is rejected, and any write may be lost.
    let patience = if fastrand::u8(..IMPATIENT) == 0 { PATIENCE.mul_f64(fastrand::f64()) } else { PATIENCE };
    let _ = timeout(patience, client.send(request)).await;
}
