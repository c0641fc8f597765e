//! Turns a refusal by the fence into [`ErrFenced`](crate::ErrFenced).
//!
//! The gate has admitted a write, and the API server refuses it, because its fence finds another holder in the Lease. Nothing
//! was changed. [`RefusalLayer`] makes an error of its own of that answer, with the API server's message.
//!
//! 1. It looks at answers with status 403 to writes of a resource, and at nothing else: not at the answer to a
//!    `deletecollection`, since the API server asks the fence for each object, so some may be gone; nor to a request that
//!    [cannot be parsed](kube_leader_gate::request), or through `proxy`, since the backend may have answered.
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
