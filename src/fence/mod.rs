//! The server-side fence: the API server itself refuses the writes of each replica that does not hold the Lease.
//!
//! A request that has left the process cannot be called back, so a gate alone leaves
//! [a window](crate::guide::guarantees#the-window-that-remains). A fence closes it. It is a
//! `ValidatingAdmissionPolicy` that takes the Lease as its parameter, and needs Kubernetes 1.30.
//!
//! 1. [`Writers`] says whose writes it judges, and how it tells the replicas apart.
//! 2. [`Fence`] makes the policy and its binding, from the election's lease and [`Policy`](crate::Policy). What the policy
//!    permits to followers, the fence exempts. Leases are exempt too.
//! 3. [`Fence::apply`], [`Fence::check`], [`Fence::check_as`] and [`Fence::remove`] manage it in a cluster; so does the
//!    example `fence`.
//! 4. [`ElectionBuilder::fence`](crate::election::ElectionBuilder::fence) makes an election rely on it: the gate opens only
//!    when the API server lets this replica pass, and a refusal becomes [`ErrNotLeader`](crate::ErrNotLeader).
//!
//! Each API server reads the Lease from its own cache, so the fence follows a new holder after some milliseconds. The
//! [guide](crate::guide::fencing) has measured numbers, the permissions, and the order of a roll-out.
//!
//! # What it does not judge
//! - Reads, and requests of other users. A request with `Impersonate-User` counts as that user's.
//! - Anything while there is no Lease. No candidate leads then. As soon as a candidate creates the Lease, the fence judges
//!   again.
//! - Access reviews and token reviews: the API server shows them to no policy.
//! - Requests for an aggregated API, unless its own server has admission policies too.
//! - It does not tell `update` from `patch`, nor `delete` from `deletecollection`. If the election's policy permits one of
//!   the two, the fence lets both pass. If it permits `update` or `patch` of objects, their creation passes too. The gate still tells them apart.

mod anchor;
mod asker;
mod builder;
mod cel;
mod conditions;
mod definition;
mod error;
mod finding;
mod hearing;
mod manage;
mod probe;
mod question;
mod server;
mod writers;

pub use self::{
    asker::Asker,
    definition::Fence,
    error::{ErrFence, ErrInvalidFence},
    finding::Finding,
    manage::Applied,
    writers::Writers,
};
