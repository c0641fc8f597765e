//! No part of the public interface: what the unpublished checks see of the inside. Any version may change
//! it, and with it the methods of public types that the documentation does not show.

pub use crate::{election::internal::*, leadership::intent::Intent};

use crate::lease::LeaseUpdate;
use std::collections::BTreeMap;

/// A claim to fill in. Only this crate can make one.
#[must_use]
pub fn claim() -> LeaseUpdate {
    LeaseUpdate {
        holder: String::new(),
        duration_seconds: 1,
        acquire_time: String::new(),
        renew_time: String::new(),
        transitions: 0,
        annotations: BTreeMap::new(),
        new_metadata: serde_json::Map::new(),
    }
}

/// The longest answer that is read, in bytes.
pub const LONGEST: usize = crate::api::LONGEST;
