//! The server-side fence on a real kube-apiserver.
//!
//! `ground` has a lease, and pods whose tokens name them. `judging` sends requests as they come, `impersonating` sends
//! them as another user, `managing` applies and checks fences, `overlapping` checks two of them, `layers` plays frozen leaders, `opening` runs elections that rely on one, `refusals` looks at what callers get, `servers` measures two
//! API servers on one etcd, `program` runs the example, and `sidecar` the sidecar.

pub mod ground;
pub mod impersonating;
pub mod judging;
pub mod layers;
pub mod managing;
pub mod opening;
pub mod overlapping;
pub mod program;
pub mod refusals;
pub mod returning;
pub mod servers;
pub mod sidecar;
