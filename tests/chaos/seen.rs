//! What the audit log says about one lease so far.

use crate::apiserver::AuditEvent;
use kube_leader_gate::testing::{LogTime, WriteRecord};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct Seen {
    /// The candidates' and the administrator's writes.
    pub log: Vec<WriteRecord>,
    /// The holder of the lease, and since when.
    pub holder: Option<(String, LogTime)>,
    /// When each candidate's last effective write arrived.
    pub written: BTreeMap<String, LogTime>,
    /// When each candidate last read the lease, or began to watch it.
    pub read: BTreeMap<String, jiff::Timestamp>,
}

impl Seen {
    pub fn take_in(&mut self, event: &AuditEvent) {
        let is_lease = event.object_ref.resource == "leases";
        let user = &event.user.username;
        let Some(record) = event.write() else {
            if is_lease && matches!(&*event.verb, "get" | "list" | "watch") {
                self.read.insert(user.clone(), event.request_received_timestamp);
            }
            return;
        };
        if record.took_effect() && is_lease {
            self.holder = record.lease.as_ref().and_then(|lease| {
                let since = match &self.holder {
                    Some((holder, since)) if *holder == lease.holder_identity => *since,
                    _ => record.completed?,
                };
                Some((lease.holder_identity.clone(), since))
            });
        } else if record.took_effect() {
            self.written.insert(user.clone(), record.received);
        }
        self.log.push(record);
    }
}
