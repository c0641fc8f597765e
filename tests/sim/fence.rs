//! The fence of the first lease, as the API server has it. It hears of each state of the lease some time later.

use crate::{gateway::identity, net::Net, plan::Class, replica::lease_name, world::path};
use bytes::Bytes;
use http::{Request, Response, StatusCode, response::Parts};
use kube_leader_gate::{Policy, leadership::Term, testing::ApiServer};
use serde_json::{Value, json};
use test_support::kube_leader_gate_fence::{Fence, Writers};

/// The fence of all machines.
pub fn fence(machines: usize) -> Fence {
    let writers = Writers::users((0..machines).map(identity)).expect("names of users");
    let lease = format!("default/{}", lease_name(0)).parse().expect("a lease");
    Fence::new(&lease, &writers, &Policy::strict()).expect("a fence")
}

/// Its answer to a workload write of a replica that does not hold the lease, as far as it has heard, and to a replica that
/// asks whether it passes.
pub fn refuses(
    net: &Net,
    server: &ApiServer,
    machine: usize,
    class: Class,
    request: &Request<Bytes>,
) -> Option<(Parts, Bytes)> {
    let lag = net.fence?;
    let asks = request.uri().query().is_some_and(|it| it.contains("dryRun"));
    if !asks && class != Class::Work {
        return None;
    }
    // Without a lease, it has nothing to judge by.
    let newest = server.object(&path(0))?;
    let heard = net.past.state(0, net.time().saturating_sub(lag)).unwrap_or(&newest);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let holder = text(&heard["spec"]["holderIdentity"]);
    let words = match (holder == identity(machine), asks) {
        (true, false) => return None,
        (true, true) => {
            let count = heard["spec"]["leaseTransitions"].as_u64().unwrap_or_default();
            let term = Term::new(text(&heard["metadata"]["uid"]), count);
            format!("the fence lets the holder pass in term {term}")
        }
        (false, _) => {
            let who = if holder.is_empty() { "no candidate".to_owned() } else { format!("{holder:?}") };
            format!(
                "write attempt rejected as client is not leader: {who} holds the lease default/{}",
                lease_name(0)
            )
        }
    };
    let name = format!("{}.default.leader-gate", lease_name(0));
    let message = format!(
        "object \"x\" is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: {words}"
    );
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
                         "code": StatusCode::FORBIDDEN.as_u16(), "message": message });
    let answer = Response::builder().status(StatusCode::FORBIDDEN).header("content-type", "application/json");
    let (parts, ()) = answer.body(()).expect("an answer").into_parts();
    Some((parts, status.to_string().into()))
}
