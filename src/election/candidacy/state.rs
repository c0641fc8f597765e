//! What a candidate knows.

use super::{
    claims::{Claims, Hand},
    contact::Contact,
    coordinated::Coordinated,
    former::Formers,
    opening::Opening,
};
use crate::{
    election::{
        crowd::Crowd,
        early::Succession,
        preemption::{OwnTerm, Precedence, Priority},
    },
    leadership::Moment,
    lease::{Identity, LeaseRecord, LeaseTiming},
};

/// Everything that a candidate's decisions depend on.
#[derive(Clone, Debug)]
pub(in crate::election) struct Candidacy {
    pub(super) identity: Identity,
    pub(super) timing: LeaseTiming,
    pub(super) known: Known,
    pub(super) claims: Claims,
    pub(in crate::election) contact: Contact,
    pub(in crate::election) precedence: Precedence,
    /// What is known about the end of the holder's process.
    pub(in crate::election) early: Succession,
    /// This candidate's last term, which another candidate may have preempted.
    pub(in crate::election) own: OwnTerm,
    pub(in crate::election) opening: Opening,
    /// The other candidates, and when this one tries.
    pub(in crate::election) crowd: Crowd,
    /// This candidate has tried to leave its place as a standby, and has not joined since.
    pub(super) has_left: bool,
    /// None if candidates contend by themselves.
    pub(super) coordinated: Option<Coordinated>,
    /// Until this moment, a write may take effect that a process without an orderly end had sent: an earlier process
    /// with this identity, or a holder that this candidate took over from early.
    pub(super) inherited_until: Moment,
    /// Who may still write, though the lease is no longer theirs.
    pub(in crate::election) formers: Formers,
    /// The largest version of the lease that was seen, of any object.
    pub(super) newest: u64,
    /// When the last claim or renewal was sent that the lease is known to have held, answered or not.
    pub(super) renewed: Moment,
}

/// The lease, as last seen.
#[derive(Clone, Debug)]
pub(super) enum Known {
    Nothing,
    /// There is no lease.
    Absent {
        /// From this moment it may be created, as far as the former writers allow.
        until: Moment,
        /// The uid of the deleted object. Later news about this object is old.
        gone: Option<String>,
        /// This candidate held it.
        was_mine: bool,
    },
    Present {
        record: LeaseRecord,
        /// When the holder's time is over: the *recorded* duration (rule S6), counted from when this process *first
        /// saw* this record. It never depends on a time in the record. If the duration makes no sense, this
        /// candidate's own duration counts.
        until: Moment,
        /// The record has not changed since this process first saw it, and it names this identity. An earlier process
        /// left it.
        inherited: bool,
    },
}

// === impl Candidacy ===

impl Candidacy {
    pub(in crate::election) fn new(
        identity: Identity,
        timing: LeaseTiming,
        priority: Option<Priority>,
    ) -> Self {
        Self {
            identity,
            timing,
            known: Known::Nothing,
            claims: Claims::default(),
            contact: Contact::new(timing),
            precedence: Precedence::new(priority, timing.lease_duration()),
            early: Succession::default(),
            own: OwnTerm::None,
            opening: Opening::default(),
            crowd: Crowd::new(timing),
            has_left: false,
            coordinated: None,
            inherited_until: Moment::from_nanos(0),
            formers: Formers::default(),
            newest: 0,
            renewed: Moment::from_nanos(0),
        }
    }

    /// The gate of this candidate opens only when [`Opening::agree`] was called in the term.
    pub(in crate::election) fn asks_before_opening(self) -> Self {
        Self { opening: Opening::asking(), ..self }
    }

    // --- what is known ---

    /// What is wrong with the lease, in words for the log.
    pub(in crate::election) fn oddity(&self) -> Option<&'static str> {
        let double = "another process uses this identity; give each process its own";
        let record = self.record()?;
        let odd = record.oddity().or_else(|| self.precedence.oddity(record));
        odd.or((self.hand() == Hand::Double).then_some(double))
    }

    /// The lease, as last seen.
    pub(in crate::election) fn record(&self) -> Option<&LeaseRecord> {
        self.known.record()
    }

    /// The lease, as last seen, if another candidate holds it.
    pub(in crate::election) fn of_another(&self) -> Option<&LeaseRecord> {
        self.record().filter(|_| self.hand() == Hand::Other)
    }

    /// The version of the lease, as last seen.
    pub(in crate::election) fn version(&self) -> Option<&str> {
        self.record().map(LeaseRecord::resource_version)
    }

    /// The fencing token of a term that begins now, or why there is none.
    ///
    /// It is the version of the lease, which holds this candidate's last claim. Each term has its own claim, which was
    /// swapped over the one before it. So this version is larger than each version that held an earlier term's claim,
    /// and smaller than each version that will hold a later one's.
    pub(in crate::election) fn fencing_token(&self) -> Result<u64, &'static str> {
        // Kubernetes writes a version without sign and leading zero. Another spelling is no promise that it can compare.
        let plain = |record: &LeaseRecord| {
            record.version().filter(|version| record.resource_version() == version.to_string())
        };
        let version = self.record().and_then(plain);
        let version = version.ok_or("the resource version of the lease is no number that can be compared")?;
        // For example, a backup of etcd was restored.
        if version < self.newest {
            return Err("a larger resource version of the lease was seen before");
        }
        Ok(version)
    }

    /// Records that the outcome of the last claim is known: the API server refused it or carried it out.
    pub(in crate::election) fn claim_is_settled(&mut self) {
        self.claims.settle_last();
    }

    /// Whether an unanswered claim may still give the lease to this candidate. It may while the lease has the version
    /// that the claim swaps.
    pub(super) fn may_become_mine(&self) -> bool {
        self.claims.may_swap(self.version().unwrap_or_default())
    }

    pub(super) fn hand(&self) -> Hand {
        let Known::Present { record, inherited, .. } = &self.known else { return Hand::None };
        if !self.is_named_in(record) {
            return record.holder().map_or(Hand::None, |_| Hand::Other);
        }
        let by_name = match inherited {
            _ if self.is_named_by_coordinator(record) => Hand::Coordinator,
            true => Hand::Inherited,
            false => Hand::Double,
        };
        self.claims.hand(record, self.timing.lease_duration()).unwrap_or(by_name)
    }

    /// Whether the lease holds a claim of this process.
    pub(in crate::election) fn is_mine(&self) -> bool {
        self.hand().is_mine()
    }

    /// Whether the lease holds the last claim of this process, with the duration that it claimed.
    pub(in crate::election) fn is_current(&self) -> bool {
        self.hand() == Hand::Current
    }

    pub(super) fn is_named_in(&self, record: &LeaseRecord) -> bool {
        record.holder() == Some(self.identity.as_str())
    }
}

// === impl Known ===

impl Known {
    pub(super) fn record(&self) -> Option<&LeaseRecord> {
        match self {
            Self::Present { record, .. } => Some(record),
            Self::Nothing | Self::Absent { .. } => None,
        }
    }
}
