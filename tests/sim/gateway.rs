//! The server's end of the network: requests that have arrived, and what the API server answers.

use crate::{
    net::{Answer, Content, Shared},
    plan::Class,
};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use kube_leader_gate::testing::ApiServer;
use tokio::runtime::Handle;
use tower::Service;

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
    let lease = request.uri().path().rsplit_once("work-").and_then(|it| it.1.parse::<usize>().ok());
    let mut service = server.service().user(&identity(machine));
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
        return net.get().answer(id, Answer::Head(Box::new(parts), Some(whole)));
    }
    net.get().answer(id, Answer::Head(Box::new(parts), None));
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

/// The name of a machine's candidate, and its user at the API server.
pub fn identity(machine: usize) -> String {
    format!("m{machine}")
}
