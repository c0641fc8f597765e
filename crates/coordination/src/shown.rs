//! What the election was shown last.

use kube_leader_gate::lease::LeaseRecord;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Shown {
    #[default]
    Nothing,
    /// There is no lease.
    Absent,
    /// The lease as it is.
    Real(LeaseRecord),
    /// A lease that no candidate holds, as held by the coordinator.
    Vacant(LeaseRecord),
    /// The same, released by the coordinator.
    Freed(LeaseRecord),
    /// A lease that names this candidate, as free.
    Free(LeaseRecord),
}

impl Shown {
    pub(crate) fn record(&self) -> Option<&LeaseRecord> {
        match self {
            Self::Nothing | Self::Absent => None,
            Self::Real(record) | Self::Vacant(record) | Self::Freed(record) | Self::Free(record) => {
                Some(record)
            }
        }
    }
}

/// The next thing to show.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Show {
    Seen(LeaseRecord),
    /// The lease was deleted in this state.
    Gone(LeaseRecord),
}
