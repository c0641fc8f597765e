//! The leader elections that are compared.

use crate::place;
use serde::{Deserialize, Serialize};
use std::{fmt, path::PathBuf};

const CARGO_LOCK: &str = include_str!("../../Cargo.lock");
const GO_MOD: &str = include_str!("../../go/go.mod");

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Peer {
    KubeLeaderGate,
    ClientGo,
    ControllerRuntime,
    Kubert,
    KubeLeaseManager,
}

impl Peer {
    pub(crate) const ALL: [Self; 5] =
        [Self::KubeLeaderGate, Self::ClientGo, Self::ControllerRuntime, Self::Kubert, Self::KubeLeaseManager];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::KubeLeaderGate => "kube-leader-gate",
            Self::ClientGo => "client-go",
            Self::ControllerRuntime => "controller-runtime",
            Self::Kubert => "kubert",
            Self::KubeLeaseManager => "kube-lease-manager",
        }
    }

    pub(crate) fn program(self) -> PathBuf {
        match self {
            Self::KubeLeaderGate => place::program("candidate-gate"),
            Self::Kubert => place::program("candidate-kubert"),
            Self::KubeLeaseManager => place::program("candidate-kube-lease-manager"),
            Self::ClientGo | Self::ControllerRuntime => place::go_program(self.name()),
        }
    }

    /// As the lock files have it.
    pub(crate) fn version(self) -> &'static str {
        let after = |text: &'static str, start: &str| {
            text.split_once(start).and_then(|(_, rest)| rest.split(['"', '\n', ' ']).next()).unwrap_or("?")
        };
        match self {
            Self::ClientGo => after(GO_MOD, "k8s.io/client-go v"),
            Self::ControllerRuntime => after(GO_MOD, "sigs.k8s.io/controller-runtime v"),
            _ => after(CARGO_LOCK, &format!("name = \"{}\"\nversion = \"", self.name())),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Peer;

    #[test]
    fn lock_files_have_each_version() {
        for peer in Peer::ALL {
            assert!(peer.version().split('.').count() >= 3, "{peer} {}", peer.version());
        }
    }
}
