//! The tower middleware that lets all reads pass, and lets writes pass only while this process leads.
//!
//! ```
//! use http::{Request, Response};
//! use kube_leader_gate::{ErrNotLeader, WriteGateLayer, leadership::Grantor};
//! use std::convert::Infallible;
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! # tokio_test::block_on(async {
//! let grantor = Grantor::new(); // your elector owns it; there is no term yet, so this process follows
//! let server = service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Response::new(())) });
//! let gate = WriteGateLayer::new(grantor.leadership()); // of an election: `election.layer()`
//! let client = ServiceBuilder::new().layer(gate).service(server);
//!
//! let read = Request::get("/api/v1/namespaces/default/pods").body(())?;
//! client.clone().oneshot(read).await?; // passes
//!
//! let write = Request::delete("/api/v1/namespaces/default/pods/web-0").body(())?;
//! let error = client.oneshot(write).await.unwrap_err();
//! assert!(ErrNotLeader::find(&*error).is_some()); // the server has not seen this request
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) }).unwrap();
//! ```
//!
//! 1. If [`RequestInfo`](crate::request::RequestInfo) says that a request is a read, or the
//!    [`Policy`](crate::policy::Policy) exempts it, the gate does not change the request or its response.
//! 2. The gate admits a write only if [`Leadership`](crate::leadership::Leadership) is valid at that instant
//!    ([rule S1](crate::guide::guarantees#s1-leading-is-a-deadline)). Otherwise the inner service never sees the write, and
//!    the future resolves to [`ErrNotLeader`].
//! 3. The gate checks leadership again before each poll of an admitted write, and wakes the write when its term ends.
//!    It then drops the write, which closes the connection under it, and the future resolves to
//!    [`ErrLeadershipLost`]. The outcome of the write is unknown
//!    ([rule S2](crate::guide::guarantees#s2-a-lost-term-cuts-off-its-writes)). Retries, a token refresh or a slow connect
//!    below the gate send nothing after the loss.
//! 4. `poll_ready` only delegates. Rejections come from `call`
//!    ([rule S15](crate::guide::guarantees#s15-a-rejection-leaves-the-client-usable)).
//!
//! A layer below the gate may hand requests to its own task. It learns of the loss when its response future is
//! dropped. tower's buffer only *calls* the service below from its task, and skips requests whose future was dropped. So
//! if a service sends only when it is polled, nothing leaves after the loss.
//!
//! # What the gate cannot do
//! - The gate cannot stop a request that has left the process. A request has left once the inner service hands it to
//!   another task: hyper's connection task sends what it has got, a body in memory to its end, also after the loss. The
//!   [connections](crate::Election::connections) of an `Election` check leadership again before they send.
//! - The API server reads a request body to its end before it changes a resource. A backend behind it may respond
//!   earlier, and nothing shows when the last bytes leave. So a write with a body to a backend counts as a write without
//!   an answer ([rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order)).
//! - The gate counts a write until its body is over, and a lost term cuts the body off, if the body is a
//!   `UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>` of http-body-util. The connection gets 64 KiB of it at a time, and
//!   may still send what it has got. The gate also counts kube's own body on its way to a backend. Such a body is in memory, and
//!   the connection gets all of it at once. If a body ends after the answer began, the write has no answer.
//! - The gate cannot look into other types of bodies. The rest of one may leave after the answer, when the write counts as
//!   answered: after a release, or after a loss. An API server that reads a change to its end does nothing with it, and one
//!   that answers early has refused the write. An aggregated API may do otherwise. So box a body that is not in memory:
//!   `body.map_err(Into::into).boxed_unsync()`.
//! - Apart from that, the gate checks an admitted write only until its response arrives. A response body may still
//!   stream. If a connection was upgraded while leading (exec, port forwarding), it stays open after a loss.
//! - Any response counts as an answer, unless its status is 408 or 5xx. If a layer below the gate makes another response
//!   itself, or repeats a write after a 5xx, the gate does not see that the API server has not answered. The election may then
//!   release the lease while the API server can still carry out the write.
//! - The gate judges each request by itself. If a layer above it repeats a rejected write until this process leads, the write
//!   passes, over what another leader may have written since. So a retry above the gate
//!   [must not repeat its errors](crate::guide::stacking#a-retry-of-your-own).
//! - After a rejected write, the gate keeps the capacity that `poll_ready` reserved of the inner service, until the next
//!   call or until this clone is dropped. If several clients share a limit, put it above the gate.
//!
//! # The deadline of a request
//!
//! The gate closes a connection when it cuts a write off, and an API server that sees this gives the write up. If the
//! process is frozen, or cut off from the network, the server sees nothing. It then works on the write for as long as its
//! own limit allows, behind a slow admission webhook for example: 34 s for most writes, and by default 60 s for the others. By
//! then another replica may lead.
//!
//! With [`with_request_deadline`](WriteGateLayer::with_request_deadline), the gate adds the parameter `timeout` to the query
//! of each admitted write: the time until the validity deadline. The API server makes it its own deadline for the request.
//! It then answers 504 `Timeout`, and begins no step of the write after that. If it has handed the write to etcd, and etcd
//! does not answer, etcd may still store it. The gates of an [`Election`](crate::Election) do so, unless
//! [`ElectionBuilder::request_deadline`](crate::election::ElectionBuilder::request_deadline) says otherwise.
//!
//! - The parameter never raises a limit. It is 1 ms at least, and an hour at most. The server takes the smaller one of it
//!   and of its own. If the caller has set a shorter `timeout`, without escapes (`timeout=1m30s`), that one stays.
//! - It is the same for every verb that changes a resource, also of an aggregated API: the API server that receives the
//!   request keeps the time. It is not added to reads, watches, logs, `exec`, `attach`, `portforward` or `proxy`, nor to
//!   a path that is not a resource or has an odd spelling: a backend could read it. Nor is it added to what the policy
//!   exempts: a follower sends that too, and has no deadline. Nor to a query of 10,000 pairs, or a URI of 64 KiB: with more,
//!   the server would read nothing.
//! - The server counts from the arrival of the request. Time on the way comes on top, so this does not stop a write that the
//!   network has delayed. A [fence](https://docs.rs/kube-leader-gate-fence) does, if the write arrives after the next
//!   leader's acquisition. If a layer below the gate sends a write again, the limit is that of the first attempt.
//! - A renewal while the server works on the write does not raise the limit. So no write can take longer than the
//!   renew deadline. With [`LeaseTiming::fast`](crate::LeaseTiming::fast) a write has 8 to 10 s, which is less than a
//!   very slow admission webhook may take.
//! - After a 504 the outcome is unknown, whatever has sent it. It counts as a write without an answer
//!   ([rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order)).
//!
//! # A write that is no request
//!
//! [`Candidate::guard`](crate::Candidate::guard) does the same with any future, for example a call of a cloud API.

mod attempt;
mod body;
mod deadline;
mod error;
mod future;
mod guarded;
mod observer;
mod service;
mod settings;

pub use self::{
    attempt::Attempt,
    error::{ErrLeadershipLost, ErrNotLeader},
    future::ResponseFuture,
    guarded::ErrGuarded,
    observer::WriteObserver,
    service::{WriteGate, WriteGateLayer},
};
#[cfg(feature = "election")]
pub(crate) use self::{observer::beside, settings::Settings};
