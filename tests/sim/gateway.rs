//! The server's end of the network: requests that have arrived, and what the API server answers.

use crate::{
    fence,
    net::{Net, Shared},
    parcel::{Answer, Content},
    plan::Class,
    replica::lease_name,
};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use kube_leader_gate::testing::ApiServer;
use serde_json::Value;
use tokio::runtime::Handle;
use tower::Service;

/// What the log says of a watch that an API server begins with an old state.
pub const PAST: &str = "watch begins in the past";

/// Hands out what has arrived by now.
pub fn deliver(net: &Shared, server: &ApiServer, runtime: &Handle) {
    loop {
        let Some(parcel) = net.get().arrived() else { return };
        let id = parcel.connection;
        match parcel.content {
            Content::Request(request) => {
                let Some((machine, class)) = net.get().machine(id) else { continue };
                let task = runtime.spawn(serve(net.clone(), server.clone(), id, machine, class, *request));
                net.get().serves(id, Some(task.abort_handle()));
            }
            // A request that has not taken effect has none.
            Content::HangUp => net.get().serves(id, None),
            Content::Answer(answer) => net.get().tell(id, answer),
        }
    }
}

async fn serve(
    net: Shared,
    server: ApiServer,
    id: u64,
    machine: usize,
    class: Class,
    request: Request<Bytes>,
) {
    let refused = fence::refuses(&net.get(), &server, machine, class, &request);
    if let Some((parts, body)) = refused {
        return net.get().answer(id, Answer::Head(Box::new(parts), Some(body)));
    }
    let watched = request.uri().query().unwrap_or_default().to_owned();
    let lease = request.uri().path().rsplit_once("work-").and_then(|it| it.1.parse::<usize>().ok());
    let mut service = server.service().user(&identity(machine));
    let doubles = class == Class::LeaseWrites && net.get().cables[machine].doubles();
    if doubles && let Ok(response) = service.call(request.clone().map(Full::new)).await {
        let (parts, body) = response.into_parts();
        let whole = body.collect().await.map_or_else(|_| Bytes::new(), http_body_util::Collected::to_bytes);
        if parts.status.is_success() {
            remember(&net, &whole);
        }
    }
    let Ok(response) = service.call(request.map(Full::new)).await else {
        return net.get().answer(id, Answer::Reset);
    };
    let (parts, mut body) = response.into_parts();
    let succeeded = parts.status.is_success();
    if class != Class::Watches || !succeeded {
        if let Some(lease) = lease.filter(|_| succeeded) {
            net.get().wrote(lease);
        }
        let whole = body.collect().await.map_or_else(|_| Bytes::new(), http_body_util::Collected::to_bytes);
        if class == Class::LeaseWrites && succeeded {
            remember(&net, &whole);
        }
        return net.get().answer(id, Answer::Head(Box::new(parts), Some(whole)));
    }
    net.get().answer(id, Answer::Head(Box::new(parts), None));
    begin_in_the_past(&mut net.get(), id, machine, &watched);
    loop {
        match body.frame().await {
            Some(Ok(frame)) => {
                if let Ok(chunk) = frame.into_data() {
                    net.get().answer(id, Answer::Chunk(chunk));
                }
            }
            Some(Err(_)) => return net.get().answer(id, Answer::Reset),
            None => return net.get().answer(id, Answer::End),
        }
    }
}

/// Notes what a write made of its lease.
pub fn remember(net: &Shared, whole: &[u8]) {
    let Ok(object) = serde_json::from_slice::<Value>(whole) else { return };
    note(&mut net.get(), object);
}

/// Notes a new state of a lease.
pub fn note(net: &mut Net, object: Value) {
    let (lease, now) = (object["metadata"]["name"].as_str().and_then(number), net.time());
    if let Some(lease) = lease {
        net.past.note(lease, now, object);
    }
}

/// What a watch shows first, if its API server lags.
fn begin_in_the_past(net: &mut Net, id: u64, machine: usize, query: &str) {
    let Some(lag) = net.cables[machine].lag() else { return };
    let seen = net.time().saturating_sub(lag);
    let all = !query.contains("fieldSelector");
    let watched = (0..net.seen.written.len()).filter(|lease| all || query.contains(&lease_name(*lease)));
    for event in watched.filter_map(|lease| net.past.event(lease, seen)).collect::<Vec<_>>() {
        net.note(PAST);
        net.answer(id, Answer::Chunk(event.into()));
    }
}

fn number(lease: &str) -> Option<usize> {
    lease.strip_prefix("lease-")?.parse().ok()
}

/// The name of a machine's candidate, and its user at the API server.
pub fn identity(machine: usize) -> String {
    format!("m{machine}")
}
