//! What the unpublished checks see of the election.

pub use super::{
    hooks::LeaseCall,
    lease_watch::WatchNews,
    machine::{Call, GateChange, Machine, Order, Outcome, Output, View},
    preemption::{HANDOVER, HOLDER_KEY, Handover, Precedence, holder_key, is_key},
};

/// The core that takes the place of this one.
pub mod core {
    pub use crate::election::core::{ASKED, CLAIM, Call, Gate, Machine, Next, Order, WAITS_FOR, Writes};
}
