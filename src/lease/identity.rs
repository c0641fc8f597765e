//! The name of a candidate.

use std::{error::Error, fmt, str::FromStr, sync::Arc};

/// The longest identity, in bytes. This is the limit of object names, such as a pod's name.
const LONGEST: usize = 253;
const ALLOWED: &str = "1 to 253 bytes without control characters or a space at either end";

/// The name of a candidate in the lease. No two live processes may share one.
///
/// ```
/// use kube_leader_gate::lease::Identity;
///
/// assert_eq!(Identity::new("my-controller-7d4b9c-x2x7q")?.as_str(), "my-controller-7d4b9c-x2x7q");
/// assert!(Identity::new("").unwrap_err().to_string().contains("allowed: 1 to 253"));
/// # Ok::<(), kube_leader_gate::lease::ErrInvalidIdentity>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity(Arc<str>);

/// The identity is invalid. The error says what was given and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrInvalidIdentity {
    given: String,
}

// === impl Identity ===

impl Identity {
    /// Makes an identity from your own text.
    ///
    /// # Errors
    /// [`ErrInvalidIdentity`] if it is empty (an empty holder means a free lease), is longer than 253 bytes, has
    /// control characters, or begins or ends with a space.
    pub fn new(identity: impl Into<String>) -> Result<Self, ErrInvalidIdentity> {
        let given = identity.into();
        let fits = !given.is_empty() && given.len() <= LONGEST;
        if fits && given.trim() == given && !given.chars().any(char::is_control) {
            Ok(Self(given.into()))
        } else {
            Err(ErrInvalidIdentity { given })
        }
    }

    /// Inside a cluster, uses the pod's name, so that a restarted container takes its own lease back at once.
    /// Elsewhere, uses the host's name and a random part.
    ///
    /// The pod's name is `POD_NAME`. If that is not set, it is the host's name, which Kubernetes sets to the pod's
    /// name. On the node's network (`hostNetwork: true`) the host's name is the node's name. Set `POD_NAME` there,
    /// from the downward API's `metadata.name`.
    ///
    /// If a candidate finds its own name in the lease when it begins, it takes the lease at once. So a name must not
    /// be used again while an older process with that name may live. This can happen with a `StatefulSet`: if a pod
    /// on a disconnected node is deleted by force, its successor has the same name. The older process closes its gate
    /// when its watch shows the successor, or at its next renewal. If you delete pods by force, use an identity that
    /// includes the pod's uid.
    ///
    /// # Errors
    /// [`ErrInvalidIdentity`] if the name that was found is not a valid identity.
    pub fn infer() -> Result<Self, ErrInvalidIdentity> {
        let pod_name = std::env::var("POD_NAME").ok();
        let in_cluster = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
        let host = gethostname::gethostname().to_string_lossy().into_owned();
        Self::infer_from(pod_name, in_cluster, host, fastrand::u64(..))
    }

    fn infer_from(
        pod_name: Option<String>,
        in_cluster: bool,
        host: String,
        random: u64,
    ) -> Result<Self, ErrInvalidIdentity> {
        match pod_name.filter(|name| !name.is_empty()) {
            Some(name) => Self::new(name),
            None if in_cluster => Self::new(host),
            None => Self::new(format!("{host}_{random:016x}")),
        }
    }

    /// The identity, as in the lease.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Identity {
    type Err = ErrInvalidIdentity;

    /// As [`new`](Self::new).
    fn from_str(text: &str) -> Result<Self, ErrInvalidIdentity> {
        Self::new(text)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl ErrInvalidIdentity ===

impl ErrInvalidIdentity {
    /// The identity, as given.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// Describes the allowed identities in words.
    #[must_use]
    pub const fn allowed(&self) -> &'static str {
        ALLOWED
    }
}

impl fmt::Display for ErrInvalidIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Show only the beginning of an identity that is too long.
        let shown: String = self.given.chars().take(64).collect();
        write!(f, "invalid identity: {shown:?} ({} bytes), allowed: {ALLOWED}", self.given.len())
    }
}

impl Error for ErrInvalidIdentity {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_identities_are_refused() {
        for bad in ["", " ", "a ", "\ta", "a\nb", &"x".repeat(254)] {
            let error = Identity::new(bad).unwrap_err();
            assert_eq!(error.given(), bad);
            let error = error.to_string();
            assert!(error.contains(&format!("({} bytes), allowed: 1 to 253 bytes", bad.len())), "{error}");
        }
        assert!(Identity::new("x".repeat(253)).is_ok());
    }

    #[test]
    fn the_inferred_identity_prefers_the_pod_name() {
        let infer = |pod: Option<&str>, in_cluster| {
            Identity::infer_from(pod.map(String::from), in_cluster, "host".into(), 0xabc).unwrap().to_string()
        };
        assert_eq!(infer(Some("pod-1"), true), "pod-1");
        assert_eq!(infer(Some("pod-1"), false), "pod-1");
        assert_eq!(infer(None, true), "host");
        assert_eq!(infer(Some(""), true), "host");
        assert_eq!(infer(None, false), "host_0000000000000abc");
    }
}
