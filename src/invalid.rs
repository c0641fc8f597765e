//! The error for a setting that cannot work.

use std::{error::Error, fmt};

/// A setting does not work. The text names the setting, what was given and what is allowed.
///
/// It comes before anything begins, so nothing was sent. Correct the setting: a retry with the same one fails again.
///
/// ```
/// # use kube_leader_gate::policy::Policy;
/// let error = Policy::strict().allow_status("", "Pod").validate().unwrap_err();
/// assert!(error.to_string().contains(r#"the resource is "Pod", allowed: the plural that stands in paths"#));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrInvalid(Box<str>);

impl ErrInvalid {
    /// Says what was given for `setting`, and what is allowed: `the color "red", allowed: green`. For packages that extend
    /// an election.
    pub fn new(setting: impl fmt::Display, given: impl fmt::Debug, allowed: impl fmt::Display) -> Self {
        Self(format!("{setting} {given:?}, allowed: {allowed}").into())
    }

    /// For a text that may be long: shows its beginning, and its length.
    #[cfg(feature = "election")]
    pub(crate) fn of_text(setting: &str, given: &str, allowed: impl fmt::Display) -> Self {
        let shown: String = given.chars().take(64).collect();
        Self::new(setting, format_args!("{shown:?} ({} bytes)", given.len()), allowed)
    }
}

impl fmt::Display for ErrInvalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ErrInvalid {}
