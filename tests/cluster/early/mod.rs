//! Early takeover on a real API server. It has no kubelet, so each test patches the status of the pods in its place.

pub mod look_alikes;
mod node;
pub mod permissions;
mod replicas;
pub mod restarts;
pub mod takeovers;

use std::time::Duration;

/// How long a look-alike is looked at. A takeover takes the settle time of 2 s and some milliseconds.
const LOOK: Duration = Duration::from_secs(3);
