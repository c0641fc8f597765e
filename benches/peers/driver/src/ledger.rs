//! What the audit log says about one lease, and about the object that its leaders write.

use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use test_support::apiserver::AuditEvent;

/// The name of each lease, and of each `ConfigMap` that a leader writes.
pub(crate) const NAME: &str = "peers";

/// The user that prepares the namespaces. It is no candidate.
pub(crate) const ADMIN: &str = "admin";

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The changes of the lease, in their order in the API server's store.
    pub(crate) claims: Vec<Claim>,
    /// When each write of a candidate to the `ConfigMap` was answered, and whose it was.
    pub(crate) writes: Vec<(Timestamp, String)>,
    /// Each request for the lease: when it arrived, from which user, and its verb. A watch counts when it begins.
    pub(crate) requests: Vec<(Timestamp, String, String)>,
    /// When each candidate last asked for the lease.
    pub(crate) asked: BTreeMap<String, Timestamp>,
}

/// One change of the lease.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    version: u64,
    /// When it was answered.
    pub(crate) at: Timestamp,
    /// Who holds the lease from then on.
    pub(crate) holder: Option<String>,
    /// When the lease ends by its own fields.
    pub(crate) end: Timestamp,
}

impl Ledger {
    pub(crate) fn take_in(&mut self, event: &AuditEvent) {
        let user = &event.user.username;
        if user == ADMIN {
            return;
        }
        let done = event.stage == "ResponseComplete";
        let took_effect = done && (200..300).contains(&event.response_status.code);
        match (&*event.object_ref.resource, &*event.verb) {
            ("leases", verb) => {
                if (verb == "watch") != done {
                    self.requests.push((event.request_received_timestamp, user.clone(), verb.to_owned()));
                    self.asked.insert(user.clone(), event.request_received_timestamp);
                }
                if took_effect && matches!(verb, "create" | "update" | "patch") {
                    self.claim(event);
                }
            }
            ("configmaps", "patch") if took_effect => self.writes.push((event.stage_timestamp, user.clone())),
            _ => {}
        }
    }

    /// A follower may act on a release before the server has logged it, so the log's order is not the store's.
    fn claim(&mut self, event: &AuditEvent) {
        let (metadata, spec) = (&event.response_object["metadata"], &event.response_object["spec"]);
        let version = metadata["resourceVersion"].as_str().and_then(|it| it.parse().ok()).unwrap_or_default();
        let is_held = spec["holderIdentity"].as_str().is_some_and(|it| !it.is_empty());
        let renewed = spec["renewTime"].as_str().and_then(|it| it.parse::<Timestamp>().ok());
        let duration = SignedDuration::from_secs(spec["leaseDurationSeconds"].as_i64().unwrap_or_default());
        let claim = Claim {
            version,
            at: event.stage_timestamp,
            holder: is_held.then(|| event.user.username.clone()),
            end: renewed.unwrap_or(event.stage_timestamp) + duration,
        };
        let place = self.claims.partition_point(|it| it.version <= claim.version);
        self.claims.insert(place, claim);
    }

    pub(crate) fn last(&self) -> Option<&Claim> {
        self.claims.last()
    }

    pub(crate) fn holder(&self) -> Option<&str> {
        self.last()?.holder.as_deref()
    }

    /// The first claim after `from` by another candidate than `old`.
    pub(crate) fn taken(&self, from: Timestamp, old: &str) -> Option<(Timestamp, String)> {
        let taken = |it: &Claim| it.at > from && it.holder.as_deref().is_some_and(|it| it != old);
        self.claims.iter().find(|it| taken(it)).and_then(|it| Some((it.at, it.holder.clone()?)))
    }

    /// The first write after `from` by `user`.
    pub(crate) fn written(&self, from: Timestamp, user: &str) -> Option<Timestamp> {
        self.writes.iter().map(|(at, by)| (*at, by)).find(|(at, by)| *at > from && *by == user).map(|it| it.0)
    }

    /// For how long no candidate held the lease between two instants. `ends` says when which process ended: a holder
    /// that ends without a release leads no longer either.
    pub(crate) fn leaderless(
        &self,
        from: Timestamp,
        until: Timestamp,
        ends: &[(Timestamp, String)],
    ) -> SignedDuration {
        let mut changes: Vec<(Timestamp, Option<&str>)> = Vec::new();
        for (place, claim) in self.claims.iter().enumerate() {
            // A later claim may have been answered first.
            let at =
                self.claims[..place].iter().map(|it| it.at).max().map_or(claim.at, |it| it.max(claim.at));
            changes.push((at, claim.holder.as_deref()));
            let next = self.claims.get(place + 1).map_or(until, |it| it.at);
            let ended = ends
                .iter()
                .find(|(end, who)| claim.holder.as_deref() == Some(who) && *end > at && *end < next);
            changes.extend(ended.map(|(end, _)| (*end, None)));
        }
        let mut sum = SignedDuration::ZERO;
        for (place, (at, holder)) in changes.iter().enumerate() {
            let next = changes.get(place + 1).map_or(until, |it| it.0);
            if holder.is_none() && next > from && *at < until {
                sum += next.min(until).duration_since((*at).max(from));
            }
        }
        sum
    }

    /// The longest time without a write between two instants, counted from the last write before them.
    pub(crate) fn longest_gap(&self, from: Timestamp, until: Timestamp) -> Option<SignedDuration> {
        let mut writes: Vec<_> = self.writes.iter().map(|it| it.0).filter(|it| *it <= until).collect();
        writes.sort();
        let first = writes.partition_point(|it| *it < from).saturating_sub(1);
        writes[first..].windows(2).map(|pair| pair[1].duration_since(pair[0])).max()
    }
}

#[cfg(test)]
mod tests {
    use super::{Claim, Ledger};
    use jiff::{SignedDuration, Timestamp};

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(milliseconds).unwrap()
    }

    fn ledger(claims: &[(i64, Option<&str>)]) -> Ledger {
        let claim = |(version, (milliseconds, holder)): (usize, &(i64, Option<&str>))| Claim {
            version: version as u64,
            at: at(*milliseconds),
            holder: holder.map(str::to_owned),
            end: at(*milliseconds + 15_000),
        };
        Ledger { claims: claims.iter().enumerate().map(claim).collect(), ..Ledger::default() }
    }

    #[test]
    fn leaderless_time_counts_releases() {
        let ledger = ledger(&[(0, Some("a")), (100, None), (130, Some("b")), (500, None), (505, Some("c"))]);
        assert_eq!(ledger.leaderless(at(50), at(900), &[]), SignedDuration::from_millis(35));
        assert_eq!(ledger.leaderless(at(120), at(502), &[]), SignedDuration::from_millis(12));
    }

    #[test]
    fn leaderless_time_counts_ends_without_release() {
        let ledger = ledger(&[(0, Some("a")), (700, Some("b"))]);
        let ends = [(at(200), "a".to_owned()), (at(300), "c".to_owned())];
        assert_eq!(ledger.leaderless(at(0), at(900), &ends), SignedDuration::from_millis(500));
    }

    #[test]
    fn claim_answered_before_release_leaves_no_gap() {
        let ledger = ledger(&[(0, Some("a")), (101, None), (100, Some("b"))]);
        assert_eq!(ledger.leaderless(at(0), at(900), &[]), SignedDuration::ZERO);
    }

    #[test]
    fn gap_counts_from_last_write_before() {
        let writes = [0, 90, 100, 180, 400].map(|it| (at(it), "a".to_owned())).into();
        let ledger = Ledger { writes, ..Ledger::default() };
        assert_eq!(ledger.longest_gap(at(150), at(300)), Some(SignedDuration::from_millis(80)));
        assert_eq!(ledger.longest_gap(at(150), at(400)), Some(SignedDuration::from_millis(220)));
    }
}
