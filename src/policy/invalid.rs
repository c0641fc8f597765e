//! A rule that cannot mean what it says.

use std::{error::Error, fmt};

/// A rule that cannot mean what it says, and permits nothing: what was given, what is allowed, and the whole rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidRule {
    pub(super) what: &'static str,
    pub(super) given: String,
    pub(super) allowed: &'static str,
    pub(super) rule: String,
}

impl fmt::Display for InvalidRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, given, allowed, rule } = self;
        write!(
            f,
            "invalid rule in the policy: the {what} is {given:?}, allowed: {allowed}; such a rule permits nothing: {rule}"
        )
    }
}

impl Error for InvalidRule {}
