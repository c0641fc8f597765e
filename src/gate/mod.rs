//! The tower middleware that lets reads through and writes only while this process leads.
//!
//! 1. A request that [`RequestInfo`](crate::request::RequestInfo) calls a read, or that the
//!    [`Policy`](crate::policy::Policy) exempts, goes to the inner service untouched, and so does its response.
//! 2. A write is admitted only while [`Leadership`](crate::leadership::Leadership) says so at that instant (rule S1).
//!    Else the inner service never sees it, and the future resolves to [`ErrNotLeader`].
//! 3. An admitted write asks again before each poll and is woken when its term ends. It is then dropped, which hangs
//!    up the connection under it, and resolves to [`ErrLeadershipLost`]: outcome unknown (rule S2). Retries, a token
//!    refresh or a slow connect below the gate start nothing after the loss.
//! 4. `poll_ready` only delegates: rejections come from `call` (rule S15).
//!
//! A layer below the gate may hand requests to a task of its own. It learns of the loss when the gate drops its response
//! future, which happens when the gate's future is polled next. (tower's buffer only *calls* the service below from its
//! task, and skips requests whose future was dropped. With services that send when they are polled, nothing leaves after
//! the loss.)
//!
//! # What the gate cannot do
//! - The gate cannot call back a request that has left the process. It has left once the inner service hands it to a task
//!   of its own: hyper's connection task may send it when the process wakes from a freeze. The connections of an
//!   `Election`'s client look again before they send. Only the API server can refuse what is on its way after that.
//! - The check of an admitted write ends when its response arrives; a response body may still stream. A connection that
//!   was upgraded while leading (exec, port forwarding) stays open after a loss.
//! - Any response counts as an answer. A layer below the gate that makes one itself (tower-http's timeout) hides that the
//!   API server has not answered. The election may then release the lease while the API server can still carry out the write.
//! - A rejected write keeps what `poll_ready` reserved of the inner service, until the next call or until this clone is
//!   dropped. Put a limit that several clients share above the gate, not below it.
//!
//! # Example
//!
//! ```
//! use http::{Request, Response};
//! use kube_leader_gate::gate::{ErrNotLeader, WriteGateLayer};
//! use kube_leader_gate::leadership::{Grantor, Term};
//! use std::{convert::Infallible, time::Duration};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let grantor = Grantor::new();
//! let service = ServiceBuilder::new()
//!     .layer(WriteGateLayer::new(grantor.leadership()))
//!     .service(service_fn(|_: Request<String>| async { Ok::<_, Infallible>(Response::new("done")) }));
//!
//! let read = || Request::get("/api/v1/namespaces/default/configmaps").body(String::new());
//! let write = || Request::post("/api/v1/namespaces/default/configmaps").body("{}".to_owned());
//!
//! assert!(service.clone().oneshot(read()?).await.is_ok());
//! let error = service.clone().oneshot(write()?).await.unwrap_err();
//! assert!(error.is::<ErrNotLeader>());
//!
//! let deadline = grantor.now().saturating_add(Duration::from_secs(107));
//! let _grant = grantor.grant(Term::new("lease-uid", 1), deadline)?;
//! assert!(service.oneshot(write()?).await.is_ok());
//! # Ok(())
//! # }
//! ```

mod error;
mod find;
mod future;
mod layer;
mod observer;
mod service;
mod settings;

pub use self::{
    error::{ErrLeadershipLost, ErrNotLeader},
    future::ResponseFuture,
    layer::WriteGateLayer,
    observer::WriteObserver,
    service::WriteGate,
};
