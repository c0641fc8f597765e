//! One handover, by the server's audit log.

use jiff::Timestamp;
use std::time::Duration;
use test_support::apiserver::AuditEvent;

/// What the server saw of one handover.
pub struct Round {
    pub signal: Timestamp,
    pub next_leader: String,
    /// The release of the lease had been carried out.
    pub released: Timestamp,
    /// The next leader had acquired the lease.
    pub acquired: Timestamp,
    /// The next leader's first write arrived at the server.
    pub sent: Timestamp,
    /// It had been carried out.
    pub written: Timestamp,
    /// The next leader had carried out its first write for the changed object. None if the old leader was faster.
    pub needed: Option<Timestamp>,
    /// How many writes the next leader sent in the first 100 ms after its gain, and in the second after it.
    pub burst: (usize, usize),
    /// The lists that the next leader asked for between its gain and its first write.
    pub lists: Vec<String>,
    /// The size of the answers to them.
    pub bytes: usize,
}

impl Round {
    /// Reads a round from all requests since the signal. None while it is not over.
    pub fn read(signal: Timestamp, old_leader: &str, changed: &str, events: &[AuditEvent]) -> Option<Self> {
        let done = |it: &&AuditEvent| it.stage == "ResponseComplete" && it.response_status.code < 300;
        let leases: Vec<_> = events
            .iter()
            .filter(done)
            .filter(|it| it.object_ref.resource == "leases" && it.verb == "update")
            .collect();
        let holder =
            |it: &AuditEvent| it.response_object["spec"]["holderIdentity"].as_str().map(str::to_owned);
        let released = leases.iter().find(|it| holder(it).is_some_and(|holder| holder.is_empty()))?;
        // The watch may be faster than the answer to the release.
        let gain = leases.iter().find(|it| {
            it.request_received_timestamp > released.request_received_timestamp
                && holder(it).is_some_and(|holder| !holder.is_empty() && holder != old_leader)
        })?;
        let next_leader = holder(gain)?;
        let acquired = gain.stage_timestamp;
        let work: Vec<_> =
            events.iter().filter(done).filter(|it| it.user.username == next_leader && is_work(it)).collect();
        let of_changed = |it: &&AuditEvent| {
            name(it).is_some_and(|name| name.starts_with(&format!("{changed}-")) || name == changed)
        };
        let by_old = events.iter().filter(done).filter(|it| it.user.username == old_leader && is_work(it));
        let is_needed = by_old.filter(of_changed).count() == 0;
        let first = work.iter().min_by_key(|it| it.request_received_timestamp)?;
        let needed = work.iter().copied().filter(of_changed).map(|it| it.stage_timestamp).min();
        if is_needed && needed.is_none() {
            return None;
        }
        let within =
            |time: Duration| work.iter().filter(|it| it.request_received_timestamp < acquired + time).count();
        let burst = (within(Duration::from_millis(100)), within(Duration::from_secs(1)));
        let sent = first.request_received_timestamp;
        let lists = events.iter().filter(done).filter(|it| {
            let at = it.request_received_timestamp;
            it.verb == "list" && it.user.username == next_leader && acquired <= at && at <= sent
        });
        Some(Self {
            signal,
            released: released.stage_timestamp,
            acquired,
            sent,
            written: work.iter().map(|it| it.stage_timestamp).min()?,
            needed: needed.filter(|_| is_needed),
            burst,
            lists: lists.map(|it| it.request_uri.clone()).collect(),
            bytes: 0,
            next_leader,
        })
    }

    /// The time since the signal.
    pub fn after(&self, at: Timestamp) -> Duration {
        between(self.signal, at)
    }
}

pub fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// A write for an object of the operator. The kind itself is none.
pub fn is_work(event: &AuditEvent) -> bool {
    let writes = ["create", "update", "patch", "delete"];
    writes.contains(&&*event.verb) && ["greetings", "configmaps"].contains(&&*event.object_ref.resource)
}

fn name(event: &AuditEvent) -> Option<&str> {
    event.object_ref.name.as_deref()
}
