//! Checks whether a request can match a rule.

use super::rule::Rule;
use crate::request::{Verb, is_built_in, is_name, is_word};
use std::{error::Error, fmt};

/// The longest name of a namespace.
const LONGEST_LABEL: usize = 63;

/// A rule is invalid and permits nothing. The error names the refused part, the allowed values and the whole rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrInvalidRule {
    what: &'static str,
    given: String,
    allowed: &'static str,
    rule: String,
}

// === impl Rule ===

impl Rule {
    /// # Errors
    /// [`ErrInvalidRule`] if a part is empty, or if no request can match the rule.
    pub(super) fn validate(&self) -> Result<(), ErrInvalidRule> {
        self.validate_parts().and_then(|()| self.validate_verbs())
    }

    fn validate_parts(&self) -> Result<(), ErrInvalidRule> {
        // Manifests and code generators use these names for the core group. No real API group has such a name.
        let is_core = ["core", "v1"].contains(&self.group.as_str());
        if is_core || !self.group.is_empty() && !is_word(&self.group) {
            let allowed = "a group without its version, as \"apps\"; \"\" for the core group";
            return self.refuse("group", &self.group, allowed);
        }
        // Paths of the legacy verbs begin with these words.
        if !is_word(&self.resource) || ["watch", "proxy"].contains(&self.resource.as_str()) {
            let allowed = "the plural that stands in paths, as \"deployments\"";
            return self.refuse("resource", &self.resource, allowed);
        }
        if let Some(subresource) = self.subresource.as_deref().filter(|it| !is_word(it)) {
            let allowed = "its name in paths, as \"status\"; without one the rule is for the resource itself";
            return self.refuse("subresource", subresource, allowed);
        }
        if let Some(namespace) = self.namespace.as_deref().filter(|it| !is_label(it)) {
            let allowed = "a namespace's name; without one the rule is for all of them";
            return self.refuse("namespace", namespace, allowed);
        }
        if let Some(name) = self.name.as_deref().filter(|it| !is_name(it)) {
            let allowed =
                "the name of one object, without a slash, `%`, `;` or space; without one the rule is for all";
            return self.refuse("name", name, allowed);
        }
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) if self.is_for_namespaces() && name != namespace => self.refuse(
                "name",
                name,
                "the rule's own namespace, since a namespace object belongs to the namespace of its name",
            ),
            _ => Ok(()),
        }
    }

    fn validate_verbs(&self) -> Result<(), ErrInvalidRule> {
        for verb in &self.verbs {
            let allowed = match verb {
                Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection => continue,
                Verb::Connect if !is_built_in(&self.group) || self.is_built_in_connection() => continue,
                Verb::Connect => {
                    "in the built-in groups, only on exec, attach, portforward and proxy of pods, proxy of services, \
                     and proxy of nodes"
                }
                _ => "create, update, patch, delete, deletecollection, connect; reads pass without a rule",
            };
            return self.refuse("verb", verb.as_str(), allowed);
        }
        if self.verbs.iter().any(|verb| self.can_meet(*verb)) {
            return Ok(());
        }
        let allowed = match (self.is_connection(), self.verbs.as_slice()) {
            (_, []) => "at least one",
            (true, _) => "connect, the only verb of this subresource",
            (false, _) if self.subresource.is_some() => {
                "a verb on one object: a subresource has no collection"
            }
            (false, _) => "a verb on one object, as \"patch\": neither create nor deletecollection names one",
        };
        self.refuse("list of verbs", &self.verbs_in_words(), allowed)
    }

    /// Whether a request with this verb can match the rule.
    fn can_meet(&self, verb: Verb) -> bool {
        let named = self.name.is_some() || self.is_for_namespaces() && self.namespace.is_some();
        match verb {
            Verb::Connect => true,
            _ if self.is_connection() => false,
            Verb::DeleteCollection => !named && self.subresource.is_none(),
            Verb::Create => !named || self.subresource.is_some(),
            _ => true,
        }
    }

    /// For a `namespaces` object, the server uses its name as its namespace.
    pub(crate) fn is_for_namespaces(&self) -> bool {
        self.group.is_empty() && self.resource == "namespaces"
    }

    fn is_connection(&self) -> bool {
        matches!(self.subresource.as_deref(), Some("exec" | "attach" | "portforward" | "proxy"))
    }

    fn is_built_in_connection(&self) -> bool {
        let resources: &[&str] = match self.subresource.as_deref() {
            Some("exec" | "attach" | "portforward") => &["pods"],
            Some("proxy") => &["pods", "services", "nodes"],
            _ => &[],
        };
        self.group.is_empty() && resources.contains(&self.resource.as_str())
    }

    fn refuse(&self, what: &'static str, given: &str, allowed: &'static str) -> Result<(), ErrInvalidRule> {
        Err(ErrInvalidRule { rule: self.to_string(), what, given: given.to_owned(), allowed })
    }
}

/// Whether the text is a DNS label, as the name of a namespace must be.
fn is_label(text: &str) -> bool {
    is_word(text) && text.len() <= LONGEST_LABEL && !text.contains(['.', '_'])
}

// === impl ErrInvalidRule ===

impl ErrInvalidRule {
    /// Which part of the rule was refused: `namespace`, for example.
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
