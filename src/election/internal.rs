//! What the unpublished checks see of the election.

pub use super::{
    hooks::LeaseCall,
    lease_watch::WatchNews,
    machine::{ASKED, Busy, CLAIM, Call, Gate, Machine, Next, Restraint, WAITS_FOR},
    priority::{HOLDER_KEY, holder_key, is_key},
};
