//! Coordinated leader election (KEP-4355): the API server's coordinator chooses the holder among `LeaseCandidate` objects.
//!
//! - `settings` is what a program passes in.
//! - `record` is a `LeaseCandidate` object, and what this candidate writes into it.
//! - `register` decides what to do about that object. It is pure.
//! - `watch` follows the object, and `keeper` is the task that makes the calls.
//! - `standing` is the elector's end of that task.
//!
//! How the *lease* is treated in a coordinated election is a part of `candidacy` and of `elector`.

#[cfg(any(test, fuzzing))]
pub(super) mod fuzz;
mod keeper;
mod record;
mod register;
mod settings;
mod standing;
mod watch;

pub use self::settings::{Coordination, ErrInvalidCoordination};
pub(super) use self::{
    settings::check,
    standing::{Enrolment, Standing},
};
