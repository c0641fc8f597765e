//! What is wrong with an election that cannot be built.

use crate::{
    lease::{ErrInvalidIdentity, ErrInvalidLeaseName},
    policy::ErrInvalidRule,
};
use std::{error::Error, fmt};

/// An election that cannot be: what was given, and what is allowed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrBuild {
    /// Kubernetes would refuse the namespace or the name.
    LeaseName(ErrInvalidLeaseName),
    /// No identity was given, and the inferred one cannot stand in a lease.
    Identity(ErrInvalidIdentity),
    /// A rule of the policy can never match.
    Policy(ErrInvalidRule),
    /// No client can be made from the configuration.
    Client(kube_client::Error),
    /// The lock that [`build_with`](super::ElectionBuilder::build_with) was given cannot be made: that lock's own error.
    Lock(Box<dyn Error + Send + Sync>),
}

// === impl ErrBuild ===

impl fmt::Display for ErrBuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeaseName(error) => error.fmt(f),
            Self::Identity(error) => error.fmt(f),
            Self::Policy(error) => error.fmt(f),
            Self::Client(error) => {
                write!(f, "no client for the election can be made from the configuration: {error}")
            }
            Self::Lock(error) => write!(f, "the lock of the election cannot be made: {error}"),
        }
    }
}

impl Error for ErrBuild {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Client(error) => Some(error),
            Self::Lock(error) => Some(&**error),
            Self::LeaseName(_) | Self::Identity(_) | Self::Policy(_) => None,
        }
    }
}
