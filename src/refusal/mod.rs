//! Turns a refusal by the server-side fence into [`ErrNotLeader`](crate::ErrNotLeader).
//!
//! The gate has admitted a write, and the API server refuses it, because its fence finds another holder in the Lease. To
//! the caller this is the same as a refusal by the gate: nothing was changed, and the write belongs to the leader. So
//! [`RefusalLayer`] makes the same error of it, with the API server's message.
//!
//! 1. It looks at answers with status 403 to requests that are no reads, and at nothing else. It leaves the answer to a
//!    `deletecollection` as it came: the API server asks the fence for each object, so some may be gone. The same holds
//!    for a request that [cannot be parsed](crate::request), and for one through `proxy`: the backend may have answered.
//! 2. It reads at most 16 KiB of such an answer, for at most 5 s, whatever its encoding. If the answer is the refusal of
//!    this fence, the caller gets that error. If not (RBAC, a quota, another policy), the caller gets the whole answer as it came.
//! 3. Put it outside of the gate. The gate then sees the answer, and knows that the outcome of the write is certain
//!    ([rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order)).
//!
//! [`Election::client`](crate::Election::client) and [`Election::wrap`](crate::Election::wrap) have it built in.
//! [`Election::refusals`](crate::Election::refusals) returns it for your own stack.

mod body;
mod denial;
mod future;
mod layer;
mod service;
mod settings;

#[cfg(feature = "fence")]
pub(crate) use self::denial::{Denial, MARKER};
pub use self::{body::ResponseBody, future::ResponseFuture, layer::RefusalLayer, service::Refusal};
