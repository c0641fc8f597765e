//! The name of a candidate.

use super::name::is_subdomain;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::Value;
use std::{env, error::Error, ffi::OsString, fmt, fs, path::Path, str::FromStr, sync::Arc};

/// The longest identity, in bytes. This is the limit of object names, such as a pod's name.
const LONGEST: usize = 253;
const ALLOWED: &str = "1 to 253 bytes without control characters or a space at either end";
/// Where Kubernetes mounts the pod's own token.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

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
    allowed: &'static str,
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
            Err(ErrInvalidIdentity { given, allowed: ALLOWED })
        }
    }

    /// Inside a cluster, uses the pod's name, so that a restarted container takes its own lease back at once.
    /// Elsewhere, uses the host's name and a random part.
    ///
    /// The pod's name is `POD_NAME`, from the downward API's `metadata.name`, or else the name in the service account
    /// token that Kubernetes mounts into the pod. Without both, the host's name needs its random part here too, since all
    /// replicas may have one host name. A restarted container then waits for the end of its old lease.
    ///
    /// If a candidate finds its own name in the lease when it begins, it takes the lease at once. So a name must not
    /// be used again while an older process with that name may live. This can happen with a `StatefulSet`: if a pod
    /// on a disconnected node is deleted by force, its successor has the same name. The older process closes its gate
    /// when its watch shows the successor, or at its next renewal. If you delete pods by force, use an identity that
    /// includes the pod's uid.
    ///
    /// # Errors
    /// [`ErrInvalidIdentity`] if the name that was found is not a valid identity, or if `POD_NAME` is not UTF-8.
    pub fn infer() -> Result<Self, ErrInvalidIdentity> {
        let host = gethostname::gethostname().to_string_lossy().into_owned();
        Self::infer_from(|name| env::var_os(name), Path::new(TOKEN), &host, fastrand::u64(..))
    }

    fn infer_from(
        variable: impl Fn(&str) -> Option<OsString>,
        token: &Path,
        host: &str,
        random: u64,
    ) -> Result<Self, ErrInvalidIdentity> {
        let set = |name| variable(name).filter(|value| !value.is_empty());
        if let Some(name) = set("POD_NAME") {
            let name = name.into_string().map_err(|given| ErrInvalidIdentity {
                given: given.to_string_lossy().into_owned(),
                allowed: "UTF-8; set POD_NAME from the downward API's metadata.name",
            })?;
            return Self::new(name);
        }
        let pod = set("KUBERNETES_SERVICE_HOST").and_then(|_| pod_of(&fs::read_to_string(token).ok()?));
        Self::new(pod.unwrap_or_else(|| format!("{host}_{random:016x}")))
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
        self.allowed
    }
}

impl fmt::Display for ErrInvalidIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Show only the beginning of an identity that is too long.
        let shown: String = self.given.chars().take(64).collect();
        write!(f, "invalid identity: {shown:?} ({} bytes), allowed: {}", self.given.len(), self.allowed)
    }
}

impl Error for ErrInvalidIdentity {}

/// The pod to which a service account token is bound. It is this process's own token, and the API server compares the
/// same claim in a fence, so its signature need not be checked.
fn pod_of(token: &str) -> Option<String> {
    let claims = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let name = claims["kubernetes.io"]["pod"]["name"].as_str();
    name.filter(|name| is_subdomain(name)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

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

    /// What is inferred on the host `web`, where the token's file has this content, or where there is no such file.
    fn inferred(variables: &[(&str, &[u8])], token: Option<&str>) -> Result<String, ErrInvalidIdentity> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| OsString::from_vec(value.to_vec()))
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        if let Some(token) = token {
            fs::write(&file, token).unwrap();
        }
        Identity::infer_from(variable, &file, "web", 0xabc).map(|identity| identity.to_string())
    }

    /// A token with these claims.
    fn jwt(claims: &str) -> String {
        format!("e30.{}.c2ln\n", BASE64_URL_SAFE_NO_PAD.encode(claims))
    }

    const CLUSTER: (&str, &[u8]) = ("KUBERNETES_SERVICE_HOST", b"10.96.0.1");
    const BOUND: &str =
        r#"{"kubernetes.io":{"namespace":"a","pod":{"name":"web-7d4b9c-x2x7q","uid":"u"}},"x":"\u00ff"}"#;
    const HOST: &str = "web_0000000000000abc";

    #[test]
    fn the_inferred_identity_prefers_the_pod_name() {
        let own: (&str, &[u8]) = ("POD_NAME", b"pod-1");
        let token = jwt(BOUND);
        for (variables, token, expected) in [
            (&[own, CLUSTER] as &[_], Some(&*token), "pod-1"),
            (&[own], None, "pod-1"),
            (&[CLUSTER], Some(&token), "web-7d4b9c-x2x7q"),
            (&[("POD_NAME", b""), CLUSTER], Some(&token), "web-7d4b9c-x2x7q"),
            (&[], Some(&token), HOST),
        ] {
            assert_eq!(inferred(variables, token).as_deref(), Ok(expected), "{variables:?}");
        }
    }

    /// A pod template with `hostname: web` gives all replicas one host name, and so does `hostNetwork` on one node.
    #[test]
    fn host_name_alone_is_never_the_identity() {
        for variables in [&[] as &[_], &[CLUSTER], &[("KUBERNETES_SERVICE_HOST", b"")], &[("POD_NAME", b"")]]
        {
            assert_eq!(inferred(variables, None).as_deref(), Ok(HOST), "{variables:?}");
        }
        let empty = jwt(r#"{"kubernetes.io":{"pod":{"name":""}}}"#);
        let odd = jwt(r#"{"kubernetes.io":{"pod":{"name":"a b"}}}"#);
        let unbound =
            jwt(r#"{"kubernetes.io/serviceaccount/namespace":"a","sub":"system:serviceaccount:a:b"}"#);
        for token in ["", ".", "a.b.c", "opaque", "e30.!.e30", &jwt("[]"), &jwt("{"), &empty, &odd, &unbound]
        {
            assert_eq!(inferred(&[CLUSTER], Some(token)).as_deref(), Ok(HOST), "{token}");
        }
    }

    #[test]
    fn pod_name_that_is_not_utf8_is_refused() {
        let error = inferred(&[("POD_NAME", b"pod-\xff"), CLUSTER], Some(&jwt(BOUND))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid identity: \"pod-\u{fffd}\" (7 bytes), allowed: UTF-8; set POD_NAME from the downward API's \
             metadata.name"
        );
        let blank = inferred(&[("POD_NAME", b"pod-1\n")], None).unwrap_err();
        assert!(blank.to_string().contains("without control characters"), "{blank}");
    }
}
