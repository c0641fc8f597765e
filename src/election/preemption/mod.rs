//! Lets a candidate of higher precedence preempt a live holder, so that the two never write at once.
//!
//! - `priority` compares keys. A program passes it in.
//! - `precedence` is the preempting side: whom it may preempt, and how often.
//! - `own_term` is the preempted side: its last term, and whether its successor waits for the end of its writes.
//! - `handover` is what passes between the two, in the lease.

mod handover;
mod own_term;
mod precedence;
mod priority;

pub use self::priority::{ErrInvalidPriority, Priority};
pub(super) use self::{
    handover::Handover,
    own_term::OwnTerm,
    precedence::{HOLDER_KEY, Precedence, holder_key},
    priority::is_key,
};

#[cfg(any(test, fuzzing))]
pub(super) use self::handover::HANDOVER;

#[cfg(test)]
mod tests;
