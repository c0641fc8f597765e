//! A rule that can never match.

use std::{error::Error, fmt};

/// A rule that no request can match: what was given, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidRule {
    pub(super) what: &'static str,
    pub(super) given: String,
    pub(super) allowed: &'static str,
}

impl fmt::Display for InvalidRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "invalid rule in the policy: the {} is {:?}, allowed: {}",
            self.what, self.given, self.allowed
        )
    }
}

impl Error for InvalidRule {}

#[cfg(test)]
mod tests {
    use crate::policy::{Policy, Preset, Rule};

    #[test]
    fn a_rule_that_can_match_nothing_is_refused() {
        for (rule, what) in [
            (Rule::new("apps/v1", "deployments"), r#"the group is "apps/v1""#),
            (Rule::new("Apps", "deployments"), r#"the group is "Apps""#),
            (Rule::new("apps", "Deployment"), r#"the resource is "Deployment""#),
            (Rule::new("apps", ""), r#"the resource is """#),
            (Rule::new("apps", "deployments/status"), r#"the resource is "deployments/status""#),
            (Rule::new("apps", "deployments").subresource("/status"), r#"the subresource is "/status""#),
            (Rule::new("apps", "deployments").verbs([]), "the list of verbs is"),
        ] {
            let error =
                Policy::strict().allow(Preset::Events).allow(rule).validate().unwrap_err().to_string();
            assert!(error.contains(what) && error.contains(", allowed: "), "{error}");
        }
        let fine = Policy::strict()
            .allow(Rule::new("", "pods"))
            .allow_status("example.com", "widgets")
            .allow_if(|_| true);
        assert_eq!(fine.validate(), Ok(()));
    }
}
