//! The answers of an API server with a fence.

use crate::support::{LEASE, builder};
use futures_util::future::{BoxFuture, pending};
use http::{Method, Request, Response};
use kube_leader_gate::{
    Election, Policy,
    election::ElectionBuilder,
    kube_client::{Client, client::Body},
    lease::LeasePool,
    testing::ApiServer,
};
use kube_leader_gate_fence::{Fence, Writers};
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};
use tower::service_fn;

/// How the fence answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// It follows the lease at once.
    Follows,
    /// It has not heard of the last so many changes of the holder.
    LagsFor(u32),
    /// It knows an earlier term of the same holder.
    KnowsAnEarlierTerm,
    /// There is none.
    Absent,
    /// RBAC refuses the probe.
    Forbidden,
    /// It is there, and fails to judge.
    Broken,
    /// The API server does not answer.
    Silent,
    /// A gateway, or an overloaded API server, answers.
    Says(u16),
}

/// An API server behind a fence.
#[derive(Clone)]
pub struct Wall {
    pub server: ApiServer,
    pub mood: Arc<Mutex<Mood>>,
    /// Refuses the next write of any user, as an API server does that has not heard of the holder.
    refuses: Arc<AtomicBool>,
    /// How many probes it has answered.
    pub probes: Arc<Mutex<u32>>,
}

impl Wall {
    pub fn new(mood: Mood) -> Self {
        Self {
            server: ApiServer::new(),
            mood: Arc::new(Mutex::new(mood)),
            probes: Arc::default(),
            refuses: Arc::default(),
        }
    }

    pub fn turn(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    pub fn refuse_next(&self) {
        self.refuses.store(true, Ordering::SeqCst);
    }

    /// A client of this user, without a gate. The fence judges its writes.
    pub fn client(&self, user: &'static str) -> Client {
        let wall = self.clone();
        let service = service_fn(move |request| wall.clone().answer(user, request));
        Client::new(service, "default")
    }

    /// A candidate, and a client behind its gate.
    pub fn candidate(&self, identity: &'static str) -> (Election, Client) {
        self.build(identity, builder(identity))
    }

    pub fn build(&self, identity: &'static str, builder: ElectionBuilder) -> (Election, Client) {
        let election = self.over(identity, builder.layer_lock(fence().layer(self.client(identity))));
        let client = fence().refusals().wrap(election.wrap(self.client(identity)));
        (election, client)
    }

    /// The election over the server's lease. The fence judges no lease call.
    pub fn over(&self, identity: &'static str, builder: ElectionBuilder) -> Election {
        let lock = self.server.service().user(identity);
        let connect = move || Ok(Client::new(lock.clone(), "default"));
        builder.build_in(&LeasePool::over(connect).expect("a client")).expect("a valid election")
    }

    fn answer(
        self,
        user: &'static str,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, Infallible>> {
        let probes = request.uri().path().ends_with("/leases");
        let writes = request.method() != Method::GET && !request.uri().path().contains("/leases");
        Box::pin(async move {
            let mood = *self.mood.lock().unwrap();
            if probes {
                *self.probes.lock().unwrap() += 1;
                return Ok(match self.to_a_probe(user, mood) {
                    Some(answer) => answer,
                    None => pending().await,
                });
            }
            let held = self.holder().0 == user;
            if writes && (self.refuses.swap(false, Ordering::SeqCst) || mood != Mood::Absent && !held) {
                return Ok(refusal(&format!("{} holds the lease", self.holder().0)));
            }
            let client = Client::new(self.server.service().user(user), "default");
            Ok(client.send(request).await.expect("an answer"))
        })
    }

    /// `None` if there is no answer.
    fn to_a_probe(&self, user: &str, mood: Mood) -> Option<Response<Body>> {
        let (holder, term) = self.holder();
        Some(match mood {
            Mood::Silent => return None,
            Mood::Says(code) => status(code, "the server is currently unable to handle the request"),
            Mood::Absent => status(201, "created"),
            Mood::KnowsAnEarlierTerm => denial("the fence lets the holder pass in term earlier/0"),
            Mood::Forbidden => status(403, "User \"a\" cannot create resource \"leases\""),
            Mood::Broken => denial("expression 'variables.holds' resulted in error: no such key"),
            Mood::LagsFor(left) if left > 0 => {
                self.turn(Mood::LagsFor(left - 1));
                refusal("\"former\" holds the lease")
            }
            Mood::Follows | Mood::LagsFor(_) if holder == user => {
                denial(&format!("the fence lets the holder pass in term {term}"))
            }
            Mood::Follows | Mood::LagsFor(_) => refusal(&format!("{holder:?} holds the lease")),
        })
    }

    /// The holder, and the term.
    fn holder(&self) -> (String, String) {
        let lease = self.server.object(LEASE).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let count = lease["spec"]["leaseTransitions"].as_u64().unwrap_or_default();
        (text(&lease["spec"]["holderIdentity"]), format!("{}/{count}", text(&lease["metadata"]["uid"])))
    }
}

/// The fence of the lease `default/operator`.
pub fn fence() -> Fence {
    let writers = Writers::users(["a", "b", "c"]).unwrap();
    Fence::new(&"default/operator".parse().unwrap(), &writers, &Policy::strict()).unwrap()
}

/// The answer to a write that the fence refuses because of its holder.
pub fn refusal(why: &str) -> Response<Body> {
    denial(&format!("write attempt rejected as client is not leader: {why}"))
}

/// The answer to a write that a policy refuses, with its words.
fn denial(words: &str) -> Response<Body> {
    const NAME: &str = "operator.default.leader-gate";
    let message = format!(
        "things \"a\" is forbidden: ValidatingAdmissionPolicy '{NAME}' with binding '{NAME}' denied request: {words}"
    );
    status(403, &message)
}

fn status(code: u16, message: &str) -> Response<Body> {
    let success = if code < 300 { "Success" } else { "Failure" };
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": success, "code": code, "message": message,
                         "reason": "Forbidden" });
    Response::builder().status(code).body(Body::from(status.to_string().into_bytes())).unwrap()
}
