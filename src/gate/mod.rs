//! The tower middleware that lets all reads pass, and lets writes pass only while this process leads.
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
//!   another task: hyper's connection task may send it when the process wakes from a freeze. The connections of an
//!   `Election`'s client check leadership again before they send.
//! - The API server reads a request body to its end before it changes a resource. A backend behind it may respond
//!   earlier, and nothing shows when the last bytes leave. So a write with a body to a backend counts as a write without
//!   an answer ([rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order)).
//! - The gate counts a write until its body is over, and a lost term cuts the body off, if the body is a
//!   `UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>` of http-body-util. It also counts kube's own body on its way
//!   to a backend. It cannot look into other types. So box a body that is not in memory:
//!   `body.map_err(Into::into).boxed_unsync()`.
//! - Apart from that, the gate checks an admitted write only until its response arrives. A response body may still
//!   stream. If a connection was upgraded while leading (exec, port forwarding), it stays open after a loss.
//! - Any response counts as an answer. If a layer below the gate makes a response itself (tower-http's timeout does),
//!   the gate does not see that the API server has not answered. The election may then release the lease while the
//!   API server can still carry out the write.
//! - After a rejected write, the gate keeps the capacity that `poll_ready` reserved of the inner service, until the next
//!   call or until this clone is dropped. If several clients share a limit, put it above the gate.
//!
//! # A service that is not Kubernetes
//!
//! [`WriteGateLayer::by_label`] makes a gate for any tower service. A function says which requests are writes.
//!
//! ```
//! use kube_leader_gate::gate::{ErrNotLeader, WriteGateLayer};
//! use kube_leader_gate::leadership::{Grantor, Term};
//! use std::{convert::Infallible, time::Duration};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! #[derive(Clone)]
//! enum CloudCall {
//!     Describe { instance: u32 },
//!     Terminate { instance: u32 },
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let grantor = Grantor::new();
//! let cloud = ServiceBuilder::new()
//!     .layer(WriteGateLayer::by_label(grantor.leadership(), |call: &CloudCall| match call {
//!         CloudCall::Describe { .. } => None,
//!         CloudCall::Terminate { .. } => Some("terminate an instance"),
//!     }))
//!     .service(service_fn(|_: CloudCall| async { Ok::<_, Infallible>("done") }));
//!
//! assert!(cloud.clone().oneshot(CloudCall::Describe { instance: 7 }).await.is_ok());
//! let terminate = CloudCall::Terminate { instance: 7 };
//! let error = cloud.clone().oneshot(terminate.clone()).await.unwrap_err();
//! let error = error.downcast::<ErrNotLeader>().unwrap();
//! assert_eq!(error.attempt().label(), Some("terminate an instance"));
//!
//! let deadline = grantor.now().saturating_add(Duration::from_secs(107));
//! let _grant = grantor.grant(Term::new("lease-uid", 1), deadline)?;
//! assert!(cloud.oneshot(terminate).await.is_ok());
//! # Ok(())
//! # }
//! ```
//!
//! For a write that is not a call of a service, [`Candidate::guard`](crate::Candidate::guard) does the same with any
//! future.

mod attempt;
#[cfg(feature = "election")]
mod body;
mod error;
mod future;
mod service;
mod settings;

#[cfg(feature = "election")]
pub(crate) use self::settings::{Passed, Settings};
pub use self::{
    attempt::Attempt,
    error::{ErrLeadershipLost, ErrNotLeader, WriteObserver},
    future::ResponseFuture,
    service::{ByLabel, Kubernetes, WriteGate, WriteGateLayer},
};
