//! The errors of a fence.

use kube_leader_gate::{ErrInvalid, extension::one_line, kube_client, request::Verb};
use std::{error::Error, fmt, iter, sync::Arc};

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

/// The fence refused a write that the gate had admitted: the API server found another holder in the Lease. Nothing was
/// changed.
///
/// If this process does not lead any more, the gate refuses its next write. If it leads, the API server had not heard yet of
/// the new holder, which takes some milliseconds. In both cases do as after a conflict: read what is there, and decide again.
///
/// If a layer below the gate repeats writes, as kube's own retry does, this is about the last attempt: the server may have
/// carried out an earlier one.
#[derive(Clone, Debug)]
pub struct ErrFenced {
    verb: Verb,
    message: Arc<str>,
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

// === impl ErrFenced ===

impl ErrFenced {
    /// Finds this error in `error` or in its sources, as in the `kube::Error::Service` of a client.
    #[must_use]
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        const DEEPEST: usize = 64; // in case a chain of sources loops
        let mut chain = iter::successors(Some(error), |it| (*it).source()).take(DEEPEST);
        chain.find_map(|it| it.downcast_ref())
    }

    pub(crate) fn new(verb: Verb, message: &str) -> Self {
        Self { verb, message: one_line(message).into() }
    }

    /// The verb of the write.
    #[must_use]
    pub const fn verb(&self) -> Verb {
        self.verb
    }

    /// The API server's message, on one line. It says what was refused, and who holds the lease.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ErrFenced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the API server's fence refused an admitted write ({}), and nothing was changed: {}; read what is there and \
             decide again",
            self.verb, self.message
        )
    }
}

impl Error for ErrFenced {}

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
