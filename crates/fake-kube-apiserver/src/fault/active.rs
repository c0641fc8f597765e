//! The faults in force, and which of them apply to a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::fault::Fault;
use crate::fault::effect::Effect;
use crate::request::RequestInfo;

/// The faults in force.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    rules: Vec<Rule>,
    next_id: u64,
}

#[derive(Debug)]
struct Rule {
    id: u64,
    fault: Fault,
    hits: Arc<AtomicU64>,
}

// === impl Faults ===

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) -> (u64, Arc<AtomicU64>) {
        self.next_id += 1;
        let hits = Arc::default();
        self.rules.push(Rule { id: self.next_id, fault, hits: Arc::clone(&hits) });
        (self.next_id, hits)
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.rules.retain(|it| it.id != id);
    }

    pub(crate) fn clear(&mut self) {
        self.rules.clear();
    }

    /// The effects on this request. Counts a hit for each fault that applies.
    pub(crate) fn meet(&mut self, info: &RequestInfo) -> Vec<Effect> {
        let mut effects = Vec::new();
        for rule in &self.rules {
            // The count changes only under the lock that guards the rules.
            let left = rule.fault.times.is_none_or(|times| rule.hits.load(Ordering::Relaxed) < times);
            if !left || !rule.fault.matches(info) {
                continue;
            }
            rule.hits.fetch_add(1, Ordering::Relaxed);
            let ends = rule.fault.effect.ends_request();
            effects.push(rule.fault.effect.clone());
            if ends {
                break;
            }
        }
        effects
    }
}
