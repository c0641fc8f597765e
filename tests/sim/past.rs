//! What the leases were: an API server that lags begins a watch with an old state.

use serde_json::{Value, json};

/// Each state of each lease that a write made, in order.
#[derive(Debug)]
pub struct Past(Vec<Vec<(u64, Value)>>);

impl Past {
    pub fn new(leases: usize) -> Self {
        Self(vec![vec![]; leases])
    }

    pub fn note(&mut self, lease: usize, at: u64, object: Value) {
        self.0[lease].push((at, object));
    }

    /// The event with which a watch begins that sees a lease as it was at `at`. None if it was as it is now.
    pub fn event(&self, lease: usize, at: u64) -> Option<Vec<u8>> {
        let states = &self.0[lease];
        let (_, object) = states[..states.len().saturating_sub(1)].iter().rfind(|state| state.0 <= at)?;
        let is_past = states.last().is_some_and(|last| last.0 > at);
        is_past.then(|| format!("{}\n", json!({ "type": "ADDED", "object": object })).into_bytes())
    }
}
