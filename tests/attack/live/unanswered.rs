//! What is known of a request that got no answer: who has lost it, the sidecar or the API server.

use super::{
    ammunition::Shot,
    stage::{Follower, Stage},
    wire,
};
use std::{fmt::Write as _, fs, time::Duration};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(5);

pub async fn report(stage: &Stage, follower: &Follower, shot: &Shot) -> String {
    let mut report = format!("no answer to {}\nfrom {}\n", shot.what, follower.name());
    let uri = shot.what.split_whitespace().nth(1).unwrap_or_default();
    for event in stage.cluster.requests() {
        if event.user.username == follower.user && event.request_uri == uri {
            let (came, ended) = (event.request_received_timestamp, event.stage_timestamp);
            let (how, code) = (event.stage, event.response_status.code);
            let _ = writeln!(report, "the API server: {how}, {code}, came {came}, ended {ended}");
        }
    }
    let again = timeout(PATIENCE, wire::fire(follower.addr, shot)).await;
    let _ = writeln!(report, "the same request again through the sidecar: {again:?}");
    let direct = http::Request::get(uri).body(Vec::new()).expect("it was sent");
    let direct = timeout(PATIENCE, stage.client.request_text(direct)).await;
    let direct = direct.map(|answer| answer.map(|text| text.len()));
    let _ = writeln!(report, "as a read without the sidecar, bytes: {direct:?}");
    let sockets = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let port = format!(":{:04X} ", follower.addr.port());
    for socket in sockets.lines().filter(|line| line.contains(&port)) {
        let _ = writeln!(report, "a socket: {socket}");
    }
    report
}
