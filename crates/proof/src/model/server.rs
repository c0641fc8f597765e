//! The API server of the candidates in a test: one lease.

use kube_leader_gate::lease::{ErrLockKind, LeaseName, LeaseRecord, LeaseUpdate};

/// The API server.
#[derive(Clone, Debug, Default)]
pub(super) struct Server {
    pub(super) lease: Option<LeaseRecord>,
    pub(super) version: u64,
    /// Claims whose senders do not wait for them any more: what they swap, and with what.
    pub(super) late: Vec<(Option<LeaseRecord>, LeaseUpdate)>,
}

impl Server {
    /// Writes it if it swaps what stands there.
    pub(super) fn write(
        &mut self,
        seen: Option<&LeaseRecord>,
        claim: &LeaseUpdate,
    ) -> Result<LeaseRecord, ErrLockKind> {
        let version = |record: &LeaseRecord| record.resource_version().to_owned();
        let object = match (seen, &self.lease) {
            (Some(_), None) => return Err(ErrLockKind::NotFound),
            (seen, lease) if seen.map(version) != lease.as_ref().map(version) => {
                return Err(ErrLockKind::Conflict);
            }
            (Some(seen), _) => seen.with(claim).into_json(),
            (None, _) => {
                let mut object = claim.new_lease(&LeaseName::new("default", "operator").unwrap());
                object["metadata"]["uid"] = format!("made-at-{}", self.version).into();
                object
            }
        };
        // A write that changes nothing makes no new version.
        if self.lease.as_ref().is_none_or(|lease| lease.clone().into_json() != object) {
            self.put(object);
        }
        Ok(self.lease.clone().unwrap())
    }

    /// Another program deletes the lease. Returns its last state, as a watch tells it.
    pub(super) fn delete(&mut self) -> Option<LeaseRecord> {
        let mut last = self.lease.take()?.into_json();
        self.version += 1;
        last["metadata"]["resourceVersion"] = self.version.to_string().into();
        Some(LeaseRecord::from_json(last).unwrap())
    }

    /// What a claim without a waiting sender may still do comes true.
    pub(super) fn land_late(&mut self, which: usize) {
        let (seen, claim) = self.late.swap_remove(which);
        let _ = self.write(seen.as_ref(), &claim);
    }

    pub(super) fn put(&mut self, mut object: serde_json::Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.lease = Some(LeaseRecord::from_json(object).unwrap());
    }
}
