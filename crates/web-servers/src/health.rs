//! What all web servers serve: the election, and a condition of the program.

use kube_leader_gate::{Candidate, health::Health};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// The probes of one election, ready once the caches are filled.
pub fn probes_of(candidate: Candidate, caches_are_filled: Arc<AtomicBool>) -> Health {
    Health::new(candidate, Duration::from_secs(20)).ready_if(move || {
        if caches_are_filled.load(Ordering::Relaxed) { Ok(()) } else { Err("the caches are not filled yet") }
    })
}
