//! A version of the lease whose writer has ended, and how it is shown.

use jiff::Timestamp;
use kube_leader_gate::lease::LeaseRecord;

/// The process that wrote this version of the lease has ended, and its writes have settled.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ended {
    real: LeaseRecord,
    shown: LeaseRecord,
}

impl Ended {
    /// The process that wrote `record` ended at this time. None if the lease makes no sense.
    pub(crate) fn of(record: &LeaseRecord, at: Timestamp) -> Option<Self> {
        Some(Self { real: record.clone(), shown: released(record, at)? })
    }

    /// Whether `record` is the version that was written by the process. A later one may be of a process that has started
    /// again.
    pub(crate) fn is_of(&self, record: &LeaseRecord) -> bool {
        record.uid() == self.real.uid() && record.resource_version() == self.real.resource_version()
    }

    /// The version as its holder would have released it.
    pub(crate) const fn shown(&self) -> &LeaseRecord {
        &self.shown
    }

    /// The lease as it is, if `seen` is what was shown of it.
    pub(crate) fn real(&self, seen: &LeaseRecord) -> Option<&LeaseRecord> {
        (*seen == self.shown).then_some(&self.real)
    }
}

/// Says which process wrote a claim or a release. Its second word is the time of that.
const CLAIM: &str = "kube-leader-gate/claim";

/// The lease without a holder, as its holder would release it at this time: one second, the same count, another time of
/// acquisition. The version stays, so that only a swap of this very version can take it. Only fields that each claim writes
/// differ.
fn released(record: &LeaseRecord, at: Timestamp) -> Option<LeaseRecord> {
    let mut object = record.clone().into_json();
    let spec = object.get_mut("spec")?.as_object_mut()?;
    // The end is later than all times in the lease.
    let time = at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    spec.insert("holderIdentity".into(), "".into());
    spec.insert("leaseDurationSeconds".into(), 1.into());
    spec.insert("acquireTime".into(), time.as_str().into());
    spec.insert("renewTime".into(), time.as_str().into());
    let said = object["metadata"]["annotations"][CLAIM].as_str().and_then(|claim| {
        let (process, rest) = claim.split_once(' ')?;
        let (_, rest) = rest.split_once(' ')?;
        Some(format!("{process} {time} {rest}"))
    });
    if let Some(said) = said {
        object["metadata"]["annotations"][CLAIM] = said.into();
    }
    LeaseRecord::from_json(object).ok()
}
