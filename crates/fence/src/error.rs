//! The errors of a fence.

use kube_leader_gate::{ErrInvalid, kube_client, one_line};
use std::{error::Error, fmt};

/// The fence in the cluster could not be read or changed.
///
/// A check has changed nothing. After [`Fence::apply`](crate::Fence::apply) and [`Fence::remove`](crate::Fence::remove)
/// the fence is as it was, except after [`HalfDone`](Self::HalfDone), after [`Ending`](Self::Ending) of a removal, and
/// perhaps after [`Request`](Self::Request).
///
/// To call again is safe: each call looks first, and does what is missing. After [`Changed`](Self::Changed) it helps at
/// once. After another error, mend the cause first.
///
/// The message of an API server's answer is part of the text. Any other cause is not: it is the
/// [`source`](Error::source).
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrFence {
    /// The API server has no `ValidatingAdmissionPolicy` in `admissionregistration.k8s.io/v1`: it is older than 1.30.
    /// Upgrade it, or do without a fence.
    TooOld,
    /// RBAC does not allow this to the user that asks. Grant it.
    Forbidden {
        /// The verb that is missing.
        verb: &'static str,
        /// The resource, with its group.
        resource: &'static str,
        /// The API server's message.
        message: String,
    },
    /// An object with the fence's name exists, and this crate has not made it. This crate changes only its own objects.
    Foreign {
        /// The kind of the object.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Its label `app.kubernetes.io/managed-by`, if it has one.
        manager: Option<String>,
    },
    /// The object is being deleted, and finalizers of other tools hold it. Until they are gone, it is in force.
    Ending {
        /// The kind of the object.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The finalizers, with commas.
        finalizers: String,
    },
    /// Another client changed or removed the object at the same moment. This call has not changed it: call again.
    Changed {
        /// The kind of the object.
        kind: &'static str,
        /// The API server's message.
        message: String,
    },
    /// The token belongs to the service account, but names no pod. So the fence would refuse each of its writes. Use
    /// the token that Kubernetes mounts into the pod.
    NoPodInToken {
        /// The user of the token.
        username: String,
    },
    /// The request failed for another reason. If it had no answer, the API server may have carried it out.
    Request {
        /// What was asked.
        what: String,
        /// The error of the client.
        source: kube_client::Error,
    },
    /// One of the two objects is as it should be, and the other one is not. Call again once the cause is gone.
    HalfDone {
        /// What is in the cluster now, and what it does.
        stands: String,
        /// Why the rest failed.
        source: Box<ErrFence>,
    },
}

pub(crate) fn refuse<T>(what: &str, given: &str, allowed: &str) -> Result<T, ErrInvalid> {
    Err(ErrInvalid::new(format_args!("invalid fence: the {what} is"), given, allowed))
}

// === impl ErrFence ===

impl fmt::Display for ErrFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooOld => f.write_str(
                "the API server has no ValidatingAdmissionPolicy in admissionregistration.k8s.io/v1; the fence needs \
                 Kubernetes 1.30 or newer",
            ),
            Self::Forbidden { verb, resource, message } => {
                write!(f, "RBAC does not allow it; grant {verb} on {resource}: {}", one_line(message))
            }
            Self::Foreign { kind, name, manager } => {
                let manager = one_line(manager.as_deref().unwrap_or("unknown"));
                write!(
                    f,
                    "the {kind} {name:?} was not made by kube-leader-gate (managed by: {manager}), which changes only \
                     its own objects; delete it if nothing needs it"
                )
            }
            Self::Ending { kind, name, finalizers } => write!(
                f,
                "the {kind} {name:?} is being deleted, and stays in force until its finalizers are gone ({finalizers}); \
                 try again then",
                finalizers = one_line(finalizers)
            ),
            Self::Changed { kind, message } => {
                let message = one_line(message);
                write!(f, "another client changed the {kind} at the same moment; try again: {message}")
            }
            Self::NoPodInToken { username } => write!(
                f,
                "the token of {username:?} names no pod, so the fence would refuse all of its writes; use the token \
                 that Kubernetes mounts into a pod, or kubectl create token --bound-object-kind Pod"
            ),
            Self::Request { what, source: kube_client::Error::Api(status) } => {
                write!(f, "cannot {what}: {}", one_line(&status.message))
            }
            Self::Request { what, .. } => write!(f, "cannot {what}"),
            Self::HalfDone { stands, .. } => f.write_str(stands),
        }
    }
}

impl Error for ErrFence {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Request { source: kube_client::Error::Api(_), .. } => None,
            Self::Request { source, .. } => Some(source),
            Self::HalfDone { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_cluster_stays_on_one_line() {
        let planted = "planted\r\nERROR forged \u{1b}[2J\u{202e}".to_owned();
        let (kind, message) = ("ValidatingAdmissionPolicy", planted.clone());
        for error in [
            ErrFence::Forbidden { verb: "get", resource: "leases", message: message.clone() },
            ErrFence::Foreign { kind, name: planted.clone(), manager: Some(planted.clone()) },
            ErrFence::Ending { kind, name: planted.clone(), finalizers: planted.clone() },
            ErrFence::Changed { kind, message },
            ErrFence::NoPodInToken { username: planted },
        ] {
            let text = error.to_string();
            let steers = |it: char| it.is_control() || it == '\u{202e}';
            assert!(text.contains("planted") && !text.contains(steers), "{text:?}");
        }
    }
}
