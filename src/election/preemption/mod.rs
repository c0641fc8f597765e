//! Lets a candidate of higher precedence preempt a live holder, so that the two never write at once. `precedence` is the
//! preempting side, and `own_term` the preempted side. `handover` is what passes between the two, in the lease.

#[allow(missing_docs, clippy::must_use_candidate, reason = "only `internal` shows it")]
mod handover;
mod own_term;
#[allow(missing_docs, clippy::must_use_candidate, reason = "only `internal` shows it")]
mod precedence;
mod priority;

pub(super) use self::own_term::OwnTerm;
pub use self::{
    handover::Handover,
    precedence::{HOLDER_KEY, Precedence, holder_key},
    priority::Priority,
};

#[cfg(any(test, feature = "internal"))]
pub use self::{handover::HANDOVER, priority::is_key};
