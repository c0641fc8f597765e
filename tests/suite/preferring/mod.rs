//! Candidates with priorities: who preempts whom, and when the holder acknowledges.

mod acknowledging;
mod flapping;
mod preempted;
mod preempting;
