//! Coordinated elections over the in-process API server, with a coordinator that the tests play, in paused time.

mod chance;
mod giving_way;
mod keeping;
mod naming;
mod stacked;
mod support;
