//! The errors of a policy.

use super::Preset;
use std::{error::Error, fmt};

/// A rule is invalid and permits nothing. The error names the refused part, the allowed values and the whole rule.
#[derive(Clone, Debug)]
pub struct ErrInvalidRule {
    pub(super) what: &'static str,
    pub(super) given: String,
    pub(super) allowed: &'static str,
    pub(super) rule: String,
}

/// The text is not the name of a [`Preset`].
#[derive(Clone, Debug)]
pub struct ErrInvalidPreset {
    pub(super) given: String,
}

// === impl ErrInvalidRule ===

impl ErrInvalidRule {
    /// The part of the rule that was refused: `namespace`, for example.
    #[must_use]
    pub const fn what(&self) -> &'static str {
        self.what
    }

    /// The refused part, as given.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The values that are allowed, in words.
    #[must_use]
    pub const fn allowed(&self) -> &'static str {
        self.allowed
    }

    /// The whole rule, in words.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

impl fmt::Display for ErrInvalidRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, given, allowed, rule } = self;
        write!(
            f,
            "invalid rule in the policy: the {what} is {given:?}, allowed: {allowed}; such a rule permits nothing: {rule}"
        )
    }
}

impl Error for ErrInvalidRule {}

// === impl ErrInvalidPreset ===

impl ErrInvalidPreset {
    /// The text, as given.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The names of all presets, separated by commas.
    #[must_use]
    pub fn allowed(&self) -> String {
        Preset::ALL.iter().map(|preset| preset.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for ErrInvalidPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid preset: {:?}, allowed: {}", self.given, self.allowed())
    }
}

impl Error for ErrInvalidPreset {}
