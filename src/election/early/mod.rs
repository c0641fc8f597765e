//! Takes the lease from a holder whose process has ended, before the lease runs out.
//!
//! - `settings` is what a program passes in.
//! - `holder_pod` is what a holder writes about its pod into the lease.
//! - `proof` judges what the pod's status says about the process that renewed the lease. It is pure.
//! - `succession` is what a candidate knows of such an end. It is pure, and `candidacy` asks it.
//! - `follow` watches the holder's pod.

mod follow;
#[cfg(any(test, fuzzing))]
pub(super) mod fuzz;
mod holder_pod;
mod proof;
mod settings;
mod succession;

pub use self::settings::{EarlyTakeover, ErrInvalidEarlyTakeover};
pub(super) use self::{follow::HolderWatch, holder_pod::HOLDER_POD, succession::Succession};

#[cfg(all(test, feature = "test-util"))]
mod follow_tests;
#[cfg(test)]
mod proof_tests;
#[cfg(all(test, feature = "test-util"))]
mod tests;
