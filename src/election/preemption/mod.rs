//! A live holder may be preempted by a candidate of higher precedence, without both writing at once.
//!
//! - `priority` compares keys; it is what a program gives.
//! - `precedence` is the preempting side: whom it may preempt, how often, and for whose writes it waits.
//! - `own_term` is the preempted side: its last term, and whether its successor is owed a word that it writes no more.
//! - `handover` is what passes between the two, in the lease.

mod handover;
mod own_term;
mod precedence;
mod priority;

pub use self::priority::{ErrInvalidPriority, Priority};
pub(super) use self::{
    handover::Handover,
    own_term::OwnTerm,
    precedence::{HOLDER_KEY, Overtaken, Precedence, holder_key},
};

#[cfg(test)]
pub(super) use self::handover::HANDOVER;

#[cfg(test)]
mod tests;
