//! The name of a lease, and the name of a candidate in it.

use crate::{
    invalid::ErrInvalid,
    object_names::{is_label, is_subdomain},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::Value;
use std::{env, ffi::OsString, fmt, fs, path::Path, str::FromStr, sync::Arc};

/// The namespace and name of a Lease, always valid. Its text form is `namespace/name`.
///
/// ```
/// use kube_leader_gate::lease::LeaseName;
///
/// let lease: LeaseName = "my-namespace/my-controller".parse()?;
/// assert_eq!((lease.namespace(), lease.name()), ("my-namespace", "my-controller"));
/// assert_eq!(lease.to_string(), "my-namespace/my-controller");
/// # Ok::<(), kube_leader_gate::ErrInvalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseName {
    namespace: String,
    name: String,
}

// === impl LeaseName ===

impl LeaseName {
    /// Names a lease by namespace and name.
    ///
    /// # Errors
    /// [`ErrInvalid`] if the namespace is not an RFC 1123 label, or the name is not an RFC 1123 subdomain
    /// (Kubernetes, "Object Names and IDs").
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Result<Self, ErrInvalid> {
        let (namespace, name) = (namespace.into(), name.into());
        if !is_label(&namespace) {
            let allowed = "1 to 63 of a-z, 0-9 and '-', with a letter or digit at both ends";
            return Err(ErrInvalid::new("invalid lease namespace:", namespace, allowed));
        }
        if !is_subdomain(&name) {
            let allowed =
                "1 to 253 of a-z, 0-9, '-' and '.', with a letter or digit at both ends of each part";
            return Err(ErrInvalid::new("invalid lease name:", name, allowed));
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

/// Whether this can be the uid of an object.
fn is_uid(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

impl FromStr for LeaseName {
    type Err = ErrInvalid;

    fn from_str(text: &str) -> Result<Self, ErrInvalid> {
        let Some((namespace, name)) = text.split_once('/') else {
            let allowed = "a namespace and a name, as default/my-app";
            return Err(ErrInvalid::new("invalid lease:", text, allowed));
        };
        Self::new(namespace, name)
    }
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

// === impl Identity ===

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
/// # Ok::<(), kube_leader_gate::ErrInvalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity(Arc<str>);

impl Identity {
    /// Makes an identity from your own text.
    ///
    /// # Errors
    /// [`ErrInvalid`] if it is empty (an empty holder means a free lease), is longer than 253 bytes, has
    /// control characters, or begins or ends with a space.
    pub fn new(identity: impl Into<String>) -> Result<Self, ErrInvalid> {
        let given = identity.into();
        let fits = !given.is_empty() && given.len() <= LONGEST;
        if fits && given.trim() == given && !given.chars().any(char::is_control) {
            Ok(Self(given.into()))
        } else {
            Err(refused(&given, ALLOWED))
        }
    }

    /// Inside a cluster, uses the pod's name, so that a restarted container can take its own lease back at once.
    /// Elsewhere, uses the host's name and a random part.
    ///
    /// The pod's name is `POD_NAME`, from the downward API's `metadata.name`, or else the name in the service account
    /// token that Kubernetes mounts into the pod. If a pod has neither of them, it uses the host's name and a random part too,
    /// since all replicas may have the same host name. A restarted container then waits for the end of its old lease.
    ///
    /// If a candidate finds its own name in the lease when it begins, that proves nothing. If a user deletes a pod of a
    /// `StatefulSet` by force, the pod may still run beside its successor, which has the same name. So the candidate takes the
    /// lease back only if the claim in the lease also has
    /// [the uid of the candidate's pod](crate::election::ElectionBuilder::pod_uid). If two containers of one pod contend for
    /// the same lease, give each of them an identity of its own.
    ///
    /// # Errors
    /// [`ErrInvalid`] if the name that was found is not a valid identity, or if `POD_NAME` is not UTF-8.
    pub fn infer() -> Result<Self, ErrInvalid> {
        let host = gethostname::gethostname().to_string_lossy().into_owned();
        Self::infer_from(|name| env::var_os(name), Path::new(TOKEN), &host, fastrand::u64(..))
    }

    fn infer_from(
        variable: impl Fn(&str) -> Option<OsString>,
        token: &Path,
        host: &str,
        random: u64,
    ) -> Result<Self, ErrInvalid> {
        let set = |name| variable(name).filter(|value| !value.is_empty());
        if let Some(name) = set("POD_NAME") {
            let name = name.into_string().map_err(|given| {
                refused(&given.to_string_lossy(), "UTF-8; set POD_NAME from the downward API's metadata.name")
            })?;
            return Self::new(name);
        }
        let pod =
            set("KUBERNETES_SERVICE_HOST").and_then(|_| of_pod("name", &fs::read_to_string(token).ok()?));
        let pod = pod.filter(|name| is_subdomain(name));
        Self::new(pod.unwrap_or_else(|| format!("{host}_{random:016x}")))
    }

    /// The identity, as in the lease.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Identity {
    type Err = ErrInvalid;

    /// As [`new`](Self::new).
    fn from_str(text: &str) -> Result<Self, ErrInvalid> {
        Self::new(text)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn refused(given: &str, allowed: &str) -> ErrInvalid {
    ErrInvalid::of_text("invalid identity:", given, allowed)
}

/// The uid of the pod in which this process runs: the `given` one, or else the variable `POD_UID`, or else the uid in the
/// pod's own token. None if there is none of these.
pub(crate) fn pod_uid(given: Option<String>) -> Result<Option<String>, ErrInvalid> {
    pod_uid_from(given, |name| env::var_os(name), Path::new(TOKEN))
}

fn pod_uid_from(
    given: Option<String>,
    variable: impl Fn(&str) -> Option<OsString>,
    token: &Path,
) -> Result<Option<String>, ErrInvalid> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let Some(uid) = given.or_else(|| Some(set("POD_UID")?.to_string_lossy().into_owned())) else {
        let uid =
            set("KUBERNETES_SERVICE_HOST").and_then(|_| of_pod("uid", &fs::read_to_string(token).ok()?));
        return Ok(uid.filter(|uid| is_uid(uid)));
    };
    if is_uid(&uid) {
        return Ok(Some(uid));
    }
    let allowed = "1 to 128 letters, digits and '-', as the downward API's metadata.uid in POD_UID";
    Err(ErrInvalid::of_text("invalid uid of the pod:", &uid, allowed))
}

/// The name or the uid (`what`) of the pod to which a service account token is bound. The signature of the token need not be
/// checked here: it is this process's own token, and if there is a fence, the API server compares the same claim.
fn of_pod(what: &str, token: &str) -> Option<String> {
    let claims = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    claims["kubernetes.io"]["pod"][what].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn invalid_identities_are_refused() {
        for bad in ["", " ", "a ", "\ta", "a\nb", &"x".repeat(254)] {
            let error = Identity::new(bad).unwrap_err();
            let error = error.to_string();
            assert!(error.contains(&format!("({} bytes), allowed: 1 to 253 bytes", bad.len())), "{error}");
        }
        assert!(Identity::new("x".repeat(253)).is_ok());
    }

    fn variable(variables: &[(&str, &[u8])], name: &str) -> Option<OsString> {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| OsString::from_vec(value.to_vec()))
    }

    /// Calls `infer` with the token's file, which has this content, or is missing.
    fn with_token<T>(token: Option<&str>, infer: impl FnOnce(&Path) -> T) -> T {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        if let Some(token) = token {
            fs::write(&file, token).unwrap();
        }
        infer(&file)
    }

    /// The identity that is inferred on the host `web`.
    fn inferred(variables: &[(&str, &[u8])], token: Option<&str>) -> Result<String, ErrInvalid> {
        let infer = |file: &Path| Identity::infer_from(|name| variable(variables, name), file, "web", 0xabc);
        with_token(token, infer).map(|identity| identity.to_string())
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
    fn uid_of_the_pod_is_given_or_found() {
        let uid = |given: Option<&str>, variables: &[(&str, &[u8])], token: Option<&str>| {
            let found =
                |file: &Path| pod_uid_from(given.map(str::to_owned), |name| variable(variables, name), file);
            with_token(token, found)
        };
        let (own, token): ((&str, &[u8]), _) = (("POD_UID", b"7-a"), jwt(BOUND));
        for (given, variables, token, expected) in [
            (Some("g"), &[own, CLUSTER] as &[_], Some(&*token), Some("g")),
            (None, &[own, CLUSTER], Some(&token), Some("7-a")),
            (None, &[("POD_UID", b""), CLUSTER], Some(&token), Some("u")),
            (None, &[], Some(&token), None),
            (None, &[CLUSTER], None, None),
            (None, &[CLUSTER], Some(&jwt(r#"{"kubernetes.io":{"pod":{"name":"a","uid":"a b"}}}"#)), None),
            (None, &[CLUSTER], Some("opaque"), None),
        ] {
            assert_eq!(uid(given, variables, token), Ok(expected.map(str::to_owned)), "{variables:?}");
        }
        for odd in ["", "a b", "a/b", &"x".repeat(129)] {
            let error = uid(Some(odd), &[], None).unwrap_err().to_string();
            assert!(error.starts_with("invalid uid of the pod:") && error.contains("POD_UID"), "{error}");
        }
        uid(None, &[("POD_UID", b"\xff")], None).unwrap_err();
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
