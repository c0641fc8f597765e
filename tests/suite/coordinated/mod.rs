//! Coordinated election, with a coordinator that the tests play, in paused time.

mod giving_way;
mod keeping;
mod naming;
pub mod support;
