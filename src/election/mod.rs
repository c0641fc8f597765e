//! The leader election: a task that contends for the lease until it is told to stop.
//!
//! A program builds an [`Election`], starts it as a [`Running`] task, and asks its [`Candidate`] handle who leads.
//! The main rules are [S1: leading is a deadline](crate::guide::guarantees#s1-leading-is-a-deadline), [S4: a clean
//! stop has an order](crate::guide::guarantees#s4-a-clean-stop-has-an-order) and [S10: a dead election closes the
//! gate](crate::guide::guarantees#s10-a-dead-election-closes-the-gate).
//!
//! Inside, `candidacy` decides what to do next: it is pure and knows only what the candidate saw, and when.
//! `crowd` says which candidate tries first. `preemption` replaces a live holder, and `early` one that has ended.
//! `lease_watch` follows the lease by watch. `elector` is the loop that connects these with the lock and the leadership
//! word.

mod attendants;
mod builder;
mod built;
mod candidacy;
mod candidate;
mod checks;
mod client;
mod coordination;
mod crowd;
mod early;
mod elector;
mod ended;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod hooks;
mod lease_watch;
mod preemption;
mod pulse;
mod reads_only;
mod running;
mod wall_clock;
mod work;

#[cfg(feature = "fence")]
pub(crate) use self::hooks::{Fenced, Obstacle, Opening};
#[cfg(feature = "metrics")]
pub(crate) use self::hooks::{LeaseCall, LeaseHook};
pub use self::{
    builder::ElectionBuilder,
    built::{Election, ErrBuild},
    candidate::Candidate,
    checks::{ErrNotReady, ErrUnhealthy},
    client::Connections,
    coordination::{Coordination, ErrInvalidCoordination},
    early::{EarlyTakeover, ErrInvalidEarlyTakeover},
    ended::{ErrElectionEnded, Finished, LeaseEnd},
    preemption::{ErrInvalidPriority, Priority},
    reads_only::ReadsOnly,
    running::Running,
};
