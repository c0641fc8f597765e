//! What a request addresses: for the rules of a policy, and for messages.

use super::{
    path::{Kind, Parts},
    query,
    verb::Verb,
};
use percent_encoding::percent_decode_str;
use std::fmt;

/// A request on a resource, parsed once for all rules of a policy.
#[derive(Clone, Copy)]
pub(crate) struct ResourceRequest<'a> {
    pub(crate) verb: Verb,
    pub(super) query: Option<&'a str>,
    pub(super) parts: Parts<'a>,
}

impl<'a> ResourceRequest<'a> {
    /// Group, resource, subresource.
    pub(crate) fn target(&self) -> (&'a str, &'a str, &'a str) {
        (self.parts.group, self.parts.resource, self.parts.subresource)
    }

    pub(crate) fn namespace(&self) -> &'a str {
        self.parts.namespace
    }

    /// Compares the decoded name without allocating.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        percent_decode_str(self.parts.name).eq(name.bytes())
    }

    /// Whether the query asks for a dry run. The server may ignore that.
    pub(crate) fn asks_for_dry_run(&self) -> bool {
        query::asks_for_dry_run(self.query)
    }
}

/// `resource[.group][/subresource]`, or the path if it is not a resource.
pub(super) struct Target<'a> {
    pub(super) path: &'a str,
    pub(super) parts: Parts<'a>,
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, parts } = self;
        if parts.kind != Kind::Resource {
            return f.write_str(path);
        }
        f.write_str(parts.resource)?;
        if !parts.group.is_empty() {
            write!(f, ".{}", parts.group)?;
        }
        if !parts.subresource.is_empty() {
            write!(f, "/{}", parts.subresource)?;
        }
        Ok(())
    }
}
