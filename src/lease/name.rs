//! The namespace and name of a lease, as Kubernetes allows them.

use std::{error::Error, fmt, str::FromStr};

/// The namespace and name of a Lease, always valid. Its text form is `namespace/name`.
///
/// ```
/// use kube_leader_gate::lease::LeaseName;
///
/// let lease: LeaseName = "my-namespace/my-controller".parse()?;
/// assert_eq!((lease.namespace(), lease.name()), ("my-namespace", "my-controller"));
/// assert_eq!(lease.to_string(), "my-namespace/my-controller");
/// # Ok::<(), kube_leader_gate::lease::ErrInvalidLeaseName>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseName {
    namespace: String,
    name: String,
}

/// Kubernetes would refuse the namespace or the name. The error says what was given and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrInvalidLeaseName {
    what: &'static str,
    given: String,
    allowed: &'static str,
}

// === impl LeaseName ===

impl LeaseName {
    /// Names a lease by namespace and name.
    ///
    /// # Errors
    /// [`ErrInvalidLeaseName`] if the namespace is not an RFC 1123 label, or the name is not an RFC 1123 subdomain
    /// (Kubernetes, "Object Names and IDs").
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Result<Self, ErrInvalidLeaseName> {
        let (namespace, name) = (namespace.into(), name.into());
        if !is_label(&namespace) {
            let allowed = "1 to 63 of a-z, 0-9 and '-', with a letter or digit at both ends";
            return Err(ErrInvalidLeaseName { what: "lease namespace", given: namespace, allowed });
        }
        if !is_subdomain(&name) {
            let allowed =
                "1 to 253 of a-z, 0-9, '-' and '.', with a letter or digit at both ends of each part";
            return Err(ErrInvalidLeaseName { what: "lease name", given: name, allowed });
        }
        Ok(Self { namespace, name })
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Whether this is an RFC 1123 label, as the name of a namespace or of a container.
pub(crate) fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_part(text)
}

/// Whether this is an RFC 1123 subdomain, as the name of a pod. Nothing in it has a meaning in a path or in a query.
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_part)
}

fn is_part(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(inside)
}

impl FromStr for LeaseName {
    type Err = ErrInvalidLeaseName;

    fn from_str(text: &str) -> Result<Self, ErrInvalidLeaseName> {
        let Some((namespace, name)) = text.split_once('/') else {
            let allowed = "a namespace and a name, as default/my-app";
            return Err(ErrInvalidLeaseName { what: "lease", given: text.to_owned(), allowed });
        };
        Self::new(namespace, name)
    }
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

// === impl ErrInvalidLeaseName ===

impl ErrInvalidLeaseName {
    /// The refused part: `lease namespace` or `lease name`, or `lease` if the text does not have two parts.
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
}

impl fmt::Display for ErrInvalidLeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid {}: {:?}, allowed: {}", self.what, self.given, self.allowed)
    }
}

impl Error for ErrInvalidLeaseName {}
