//! Turns a refusal by the fence into [`ErrNotLeader`](kube_leader_gate::ErrNotLeader).
//!
//! The gate has admitted a write, and the API server refuses it, because its fence finds another holder in the Lease. To
//! the caller this is the same as a refusal by the gate: nothing was changed, and the write belongs to the leader. So
//! [`RefusalLayer`] makes the same error of it, with the API server's message.
//!
//! 1. It looks at answers with status 403 that the gate has marked as [`Forbidden`](kube_leader_gate::gate::Forbidden), and
//!    at nothing else. The gate marks none to a `deletecollection`: the API server asks the fence for each object, so some
//!    may be gone. Nor one to a request that [cannot be parsed](kube_leader_gate::request), or through `proxy`: the backend
//!    may have answered.
//! 2. It reads at most 16 KiB of such an answer, for at most 5 s, whatever its encoding. If the answer is the refusal of
//!    this fence, the caller gets that error, else (RBAC, a quota, a webhook that repeats it) the answer as it came.
//! 3. Put it outside of the gate. The gate then sees the answer, and knows that the outcome of the write is certain (rule S4).
//!
//! [`Fence::refusals`](crate::Fence::refusals) makes it. [`RefusalLayer::wrap`] puts it around a client that has the gate.

mod body;
mod client;
mod future;
mod service;

pub use self::{
    body::ResponseBody,
    future::ResponseFuture,
    service::{Refusal, RefusalLayer},
};
