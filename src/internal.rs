//! No part of the public interface: what the unpublished checks see of the inside. Any version may change
//! it.

pub use crate::{election::internal::*, lease::wrapped::VettedLock};

use crate::{
    leadership::Term,
    lease::{LeaseRecord, LeaseTiming, LeaseUpdate},
};
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};

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
    }
}

/// The longest answer that is read, in bytes.
pub const LONGEST: usize = crate::api::LONGEST;

/// Makes a trait of methods that only this crate can call.
macro_rules! shown {
    ($of:ty as $shown:ident { $(fn $name:ident(&self $(, $given:ident: $it:ty)*) -> $answer:ty;)* }) => {
        pub trait $shown {
            $(fn $name(&self $(, $given: $it)*) -> $answer;)*
        }

        impl $shown for $of {
            $(fn $name(&self $(, $given: $it)*) -> $answer {
                <$of>::$name(self $(, $given)*)
            })*
        }
    };
}

shown!(LeaseRecord as InsideOfRecord {
    fn namespace(&self) -> &str;
    fn name(&self) -> &str;
    fn term(&self) -> Term;
    fn duration(&self) -> Option<Duration>;
    fn acquire_time(&self) -> Option<&str>;
    fn renew_time(&self) -> Option<&str>;
    fn annotation(&self, name: &str) -> Option<&Value>;
    fn annotated(&self, annotations: BTreeMap<&'static str, Option<String>>) -> Option<LeaseUpdate>;
    fn says_the_same(&self, other: &Self) -> bool;
    fn holds(&self, claim: &LeaseUpdate) -> Result<(), &'static str>;
    fn oddity(&self) -> Option<&'static str>;
});

shown!(LeaseTiming as InsideOfTiming {
    fn pause(&self) -> Duration;
    fn lease_seconds(&self) -> u64;
});
