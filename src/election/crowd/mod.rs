//! Candidates that contend for one lease in any number, at a bounded number of requests.
//!
//! Up to three followers stand in the lease as its next holders. When the lease is free, the first one takes it at
//! once. Each of the others waits until those before it have had their time, and everybody else then waits by chance.
//! This is a hint about *when* to try. No rule S1 to S15 depends on it: each take is a swap on the version that was
//! read, whoever stands in the lease.
//!
//! - `standbys` is the list in the lease. It is untrusted input.
//! - `pace` says how long to wait. It is pure arithmetic.
//! - `size` estimates how many candidates there are.
//! - `view` is what one candidate knows of the others.

mod pace;
mod size;
mod standbys;
mod view;

pub(super) use self::{
    standbys::{STANDBYS, Standbys},
    view::Crowd,
};

#[cfg(test)]
pub(super) use self::pace::longest_wait;
#[cfg(any(test, fuzzing))]
pub(super) use self::pace::longest_wait_at_the_start;
