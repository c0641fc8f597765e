//! Each piece of code that a program gives to the crate panics in turn. The gate is shut afterwards, or the term goes on.
//! No lock stays locked, other replicas can lead, and the process does not hang.
//!
//! Other files have the panics of a workload (`stopping/release`), of the work of a term (`work/leading/ending`), of a
//! lock (`locks/misbehaving`), of an observer (`observers/tasks`) and of a comparison of priorities
//! (`preferring/asking`).

mod clock;
mod election;
mod gate;
#[cfg(all(feature = "metrics", feature = "runtime"))]
pub mod log;
#[cfg(feature = "runtime")]
mod reconcilers;
#[cfg(feature = "metrics")]
mod recorder;

use kube_leader_gate::{
    Leadership,
    leadership::{Clock, Grant, Grantor, Term},
};
use std::{sync::Arc, time::Duration};

const SECOND: Duration = Duration::from_secs(1);
/// A lease of 15 s that another candidate sees for the first time, and some calls.
const HANDOVER: Duration = Duration::from_secs(17);

/// A leadership with a term.
fn leading_alone(clock: impl Clock) -> (Grantor, Grant, Leadership) {
    let grantor = Grantor::with_clock(Arc::new(clock));
    let deadline = grantor.now().saturating_add(60 * SECOND);
    let grant = grantor.grant(Term::new("uid", 1), deadline).expect("in time");
    let leadership = grantor.leadership();
    (grantor, grant, leadership)
}
