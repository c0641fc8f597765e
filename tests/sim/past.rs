//! What the leases were: an API server that lags begins a watch with an old state.

use serde_json::{Value, json};
use std::collections::VecDeque;

/// For so long each state is kept, in milliseconds. No server lags as much.
const KEPT: u64 = 60_000;

/// Each state of each lease that a write made lately, in order, and the one before them.
#[derive(Debug)]
pub struct Past(Vec<VecDeque<(u64, Value)>>);

impl Past {
    pub fn new(leases: usize) -> Self {
        Self(vec![VecDeque::new(); leases])
    }

    pub fn note(&mut self, lease: usize, at: u64, object: Value) {
        let states = &mut self.0[lease];
        states.push_back((at, object));
        while states.get(1).is_some_and(|second| second.0 + KEPT < at) {
            states.pop_front();
        }
    }

    /// The lease as it was at `at`. None if no state of that time is known.
    pub fn state(&self, lease: usize, at: u64) -> Option<&Value> {
        self.0[lease].iter().rev().find(|state| state.0 <= at).map(|state| &state.1)
    }

    /// The event with which a watch begins that sees a lease as it was at `at`. None if it was as it is now.
    pub fn event(&self, lease: usize, at: u64) -> Option<Vec<u8>> {
        let states = &self.0[lease];
        let (_, object) = states.iter().rev().skip(1).find(|state| state.0 <= at)?;
        let is_past = states.back().is_some_and(|last| last.0 > at);
        is_past.then(|| format!("{}\n", json!({ "type": "ADDED", "object": object })).into_bytes())
    }
}
