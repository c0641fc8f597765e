//! How the judge goes through the log, one write at a time.

use std::time::Duration;

use crate::judge::log::{LogTime, StoredLease, WriteRecord};
use crate::judge::verdict::{LeaseTerm, StrayKind, StrayWrite, TermEnding, Verdict};

/// The state at one point of the log.
#[derive(Debug)]
pub(crate) struct History<'a> {
    candidates: &'a [String],
    /// The Lease, if it exists.
    lease: Option<StoredLease>,
    /// The candidate that acquired last.
    last_candidate: Option<String>,
    pub(crate) verdict: Verdict,
}

// === impl History ===

impl<'a> History<'a> {
    pub(crate) fn new(candidates: &'a [String]) -> Self {
        Self { candidates, lease: None, last_candidate: None, verdict: Verdict::default() }
    }

    /// Takes in a write on the Lease, when it took effect.
    pub(crate) fn lease_written(&mut self, moment: LogTime, record: &WriteRecord) {
        let Some(next) = &record.lease else {
            if record.verb == "delete" {
                self.end_term(moment, TermEnding::Deleted);
                self.lease = None;
            }
            return;
        };
        let before = self.lease.replace(next.clone());
        // Another uid means a deletion that the log does not show.
        let before = before.filter(|it| it.uid == next.uid);
        let same_term = before.as_ref().is_some_and(|it| {
            it.holder_identity == next.holder_identity && it.lease_transitions == next.lease_transitions
        });
        if next.holder_identity.is_empty() {
            self.end_term(moment, TermEnding::Released);
        } else if same_term {
            self.renew(moment, record.received, next, before.as_ref());
        } else {
            self.end_term(moment, TermEnding::Replaced);
            self.begin_term(moment, record, next);
        }
    }

    /// Takes in a candidate's write on another object, when it arrived.
    pub(crate) fn written(&mut self, record: &WriteRecord) {
        let user = &record.user;
        *self.verdict.admitted.entry(user.clone()).or_default() += 1;
        let term = self.verdict.terms.last().filter(|it| it.ended.is_none());
        let kind = match (&self.last_candidate, term) {
            (Some(other), _) if other != user => StrayKind::Overlap(other.clone()),
            (_, Some(term)) if term.user == *user || term.holder == *user => {
                if record.received.at < term.runs_out() {
                    return;
                }
                StrayKind::RunOut
            }
            _ => StrayKind::NotHeld,
        };
        let (user, path) = (user.clone(), record.path.clone());
        self.verdict.strays.push(StrayWrite { user, path, received: record.received, kind });
    }

    fn begin_term(&mut self, moment: LogTime, record: &WriteRecord, lease: &StoredLease) {
        let user = &record.user;
        let candidate = [&lease.holder_identity, user]
            .into_iter()
            .find(|it| self.candidates.iter().any(|candidate| candidate == *it));
        if let Some(candidate) = candidate {
            self.last_candidate = Some(candidate.clone());
        }
        self.verdict.terms.push(LeaseTerm {
            user: user.clone(),
            holder: lease.holder_identity.clone(),
            transitions: lease.lease_transitions.unwrap_or_default(),
            acquired: moment,
            renewed: moment,
            heard: record.received,
            duration: duration(lease),
            renewals: 0,
            ended: None,
        });
    }

    fn renew(&mut self, moment: LogTime, heard: LogTime, lease: &StoredLease, before: Option<&StoredLease>) {
        let Some(term) = self.verdict.terms.last_mut() else {
            return;
        };
        term.duration = duration(lease);
        if before.is_some_and(|it| it.renew_time != lease.renew_time) {
            term.renewed = moment;
            term.heard = heard;
            term.renewals += 1;
        }
    }

    fn end_term(&mut self, moment: LogTime, how: TermEnding) {
        if let Some(term) = self.verdict.terms.last_mut().filter(|it| it.ended.is_none()) {
            term.ended = Some((moment, how));
        }
    }
}

fn duration(lease: &StoredLease) -> Duration {
    let seconds = lease.lease_duration_seconds.unwrap_or_default();
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}
