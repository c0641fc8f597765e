//! Handmade write logs.

use std::time::Duration;

use ::http::Method;
use fake_kube_apiserver::{Judge, LogTime, StoredLease, Verdict, WriteRecord};
use tokio::time::Instant;

use crate::support::MAPS;

/// A handmade log. Each entry has a time in milliseconds.
pub(crate) struct Script {
    start: Instant,
    order: u64,
    pub(crate) log: Vec<WriteRecord>,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), order: 0, log: Vec::new() }
    }

    pub(crate) fn moment(&mut self, ms: u64) -> LogTime {
        self.order += 1;
        LogTime { at: self.start + Duration::from_millis(ms), order: self.order }
    }

    pub(crate) fn record(&mut self, user: &str, verb: &'static str, ms: u64) -> &mut WriteRecord {
        let (received, completed) = (self.moment(ms), self.moment(ms));
        self.log.push(WriteRecord {
            user: user.into(),
            user_agent: String::new(),
            method: Method::PUT,
            verb,
            path: format!("{MAPS}/x"),
            group: String::new(),
            version: "v1".into(),
            resource: "configmaps".into(),
            namespace: Some("default".into()),
            name: Some("x".into()),
            subresource: None,
            dry_run: false,
            seen_version: None,
            received,
            completed: Some(completed),
            status: 200,
            lease: None,
        });
        self.log.last_mut().unwrap()
    }

    pub(crate) fn write(&mut self, user: &str, ms: u64) -> &mut WriteRecord {
        self.record(user, "update", ms)
    }

    pub(crate) fn on_lease(&mut self, user: &str, verb: &'static str, ms: u64) -> &mut WriteRecord {
        let record = self.record(user, verb, ms);
        record.group = "coordination.k8s.io".into();
        record.resource = "leases".into();
        record.name = Some("demo".into());
        record
    }

    pub(crate) fn lease(&mut self, user: &str, holder: &str, transitions: i64, ms: u64) -> &mut WriteRecord {
        let record = self.on_lease(user, "update", ms);
        record.lease = Some(StoredLease {
            uid: "1".into(),
            resource_version: ms,
            holder_identity: holder.into(),
            lease_transitions: Some(transitions),
            lease_duration_seconds: Some(15),
            acquire_time: None,
            renew_time: Some(ms.to_string()),
            annotations: std::collections::BTreeMap::new(),
        });
        record
    }

    pub(crate) fn verdict(&self) -> Verdict {
        Judge::new("default", "demo", ["a", "b", "c"]).verdict(&self.log)
    }
}
