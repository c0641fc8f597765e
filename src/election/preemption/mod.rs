//! Lets a candidate of higher precedence preempt a live holder, so that the two never write at once.
//!
//! - `priority` compares keys. A program passes it in.
//! - `precedence` is the preempting side: whom it may preempt, how often, and for whose writes it waits.
//! - `own_term` is the preempted side: its last term, and whether its successor waits for the end of its writes.
//!
//! The two sides talk through the lease (`lease::handover`).

mod own_term;
mod precedence;
mod priority;

pub use self::priority::{ErrInvalidPriority, Priority};
pub(super) use self::{
    own_term::OwnTerm,
    precedence::{Overtaken, Precedence},
};

#[cfg(test)]
mod tests;
