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
//! A layer below the gate may hand requests to a task of its own. Such a layer learns of the loss when the gate drops its
//! response future. tower's buffer only *calls* the service below from its task, and skips requests whose future was dropped.
//! So if the service below sends only when its future is polled, nothing leaves after the loss.
//!
//! # What the gate cannot do
//! - The gate cannot stop a request that has left the process. A request has left once the inner service hands it to
//!   another task. hyper's connection task sends all that it has received, also after the loss, for example the rest of a
//!   body in memory. The [connections](crate::Election::connections) of an `Election` check leadership again before they send.
//! - The API server reads a request body to its end before it changes a resource. A backend behind it may respond
//!   earlier, and nothing shows when the last bytes leave. So a write with a body to a backend counts as a write without
//!   an answer ([rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order)).
//! - If the body of a write is a `UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>` of http-body-util, the gate counts the
//!   write until the body is over, and cuts the body off when the term is lost. The connection gets 64 KiB of the body at a
//!   time, and may still send what it has received. If the body is kube's own type and goes to a backend, the gate also counts
//!   the write until the body is over. Such a body is in memory, and the connection gets all of it at once. If a body ends
//!   after the answer began, the write counts as a write without an answer.
//! - The gate cannot look into other types of bodies. The rest of such a body may leave after the answer. The write then
//!   already counts as answered, so this may be after a release or after a loss. The API server does nothing with such a rest:
//!   it reads a request to the end before it changes anything, and if it answers earlier, it has refused the request. An
//!   aggregated API may do otherwise. So box a body that is not in memory: `body.map_err(Into::into).boxed_unsync()`.
//! - Apart from that, the gate checks an admitted write only until its response arrives. A response body may still
//!   stream. If a connection was upgraded while leading (exec, port forwarding), it stays open after a loss.
//! - Any response counts as an answer, unless its status is 408 or 5xx. If a layer below the gate makes another response
//!   itself, or repeats a write after a 5xx, the gate does not see that the API server has not answered. The election may then
//!   release the lease while the API server can still carry out the write.
//! - The gate decides on each request by itself. If a layer above the gate repeats a rejected write until this process leads,
//!   the write passes, and may overwrite what another leader has written meanwhile. So a retry above the gate
//!   [must not repeat the gate's errors](crate::guide::stacking#a-retry-of-your-own).
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
//! of each admitted write: the time until the validity deadline. The API server uses this time as its own limit for the
//! request. When the time is over, the API server answers 504 `Timeout`, and begins no further step of the write. If it has
//! already handed the write to etcd, and etcd does not answer, etcd may still store the write. The gates of an
//! [`Election`](crate::Election) add the parameter, unless
//! [`ElectionBuilder::request_deadline`](crate::election::ElectionBuilder::request_deadline) says otherwise.
//!
//! - The parameter never raises a limit. It is 1 ms at least, and an hour at most. The server uses the smaller of this limit
//!   and its own limit. If the caller has set a shorter `timeout`, without escapes (`timeout=1m30s`), the gate leaves it.
//! - The gate adds the parameter for every verb that changes a resource, also a resource of an aggregated API: the API server
//!   that receives the request keeps the time. The gate does not add it to:
//!   - reads, watches, logs, `exec`, `attach`, `portforward` and `proxy`, and a path that is not a resource or has an odd
//!     spelling: a backend could read the parameter;
//!   - a request that the policy exempts: a follower sends such a request too, and has no deadline;
//!   - a query of 10,000 pairs, or a URI of 64 KiB: if it were longer, the server would read none of it.
//! - The server counts from the moment at which the request arrives, so the time on the way does not count. So this does not
//!   stop a write that the network has delayed. A [fence](https://docs.rs/kube-leader-gate-fence) stops it, if it arrives after
//!   the next leader's acquisition. If a layer below the gate sends a write again, the limit is that of the first attempt.
//! - A renewal while the server works on the write does not raise the limit. So no write can take longer than the
//!   renew deadline. With [`LeaseTiming::fast`](crate::LeaseTiming::fast) a write has 8 to 10 s, which is less than a
//!   very slow admission webhook may take.
//! - After a 504 the outcome is unknown, whether the API server or a gateway has sent it. The write counts as a write without
//!   an answer ([rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order)).
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
