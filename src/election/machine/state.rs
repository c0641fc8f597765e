//! What a candidate decides by, and the words in which it is asked and answers.

use super::{api_health::ApiHealth, claims::Claims, former::Formers};
use crate::{
    election::{
        hooks::LeaseCall,
        preemption::{OwnTerm, Precedence, Priority},
        spread::Spread,
    },
    leadership::{Loss, Moment, Term},
    lease::{Identity, LeaseRecord, LeaseTiming, LeaseUpdate},
};
use std::time::Duration;

/// Everything that a candidate decides by.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) me: Me,
    pub(super) observed: Observed,
    pub(super) claims: Claims,
    pub(super) formers: Formers,
    /// This candidate's last term.
    pub(super) own: OwnTerm,
    pub(super) health: ApiHealth,
    pub(super) entry: Entry,
    /// The call under way.
    pub(super) flight: Option<Flight>,
    pub(super) order: Order,
}

/// What does not change.
#[derive(Clone, Debug)]
pub(super) struct Me {
    pub(super) identity: Identity,
    pub(super) timing: LeaseTiming,
    /// How long admitted writes may take to finish when this candidate gives way.
    pub(super) drain: Duration,
}

/// The order that the candidate follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Contend, lead, and contend again.
    #[default]
    Contend,
    /// Renew a held lease, but acquire nothing.
    Hold,
    /// Release a held lease, and acquire nothing more. `failed`: how much has failed since, by `api_health::FAILURE`.
    GiveUp { failed: u32 },
    /// Acquire nothing, and release a lease that a late answer brings.
    StayAway,
}

/// The rest of the process at one moment.
#[allow(clippy::struct_excessive_bools, reason = "each is one fact about the process")]
#[derive(Clone, Debug)]
pub struct View {
    pub now: Moment,
    /// The term that this process has been granted, until it is ended.
    pub term: Option<Term>,
    /// Whether that term goes on: its deadline has not passed, and no other part of the process has ended it.
    pub is_valid: bool,
    /// Whether the gate admits new writes.
    pub is_open: bool,
    /// Whether admitted writes have not finished.
    pub writing: bool,
    /// Whether a term may begin: the work of the last one has ended (rule S11), and the election does not stop.
    pub may_begin: bool,
    /// The moment after which no admitted write of this process can take effect (rule S4).
    pub settles_at: Moment,
}

/// What to do now.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Change the gate, and poll again.
    Gate(GateChange),
    /// Begin this call.
    Call(Call),
    /// End the watch, and begin another one.
    Rewatch,
    /// The order to give up is carried out: the lease is released, or is left to expire for this reason. The term is over.
    GivenUp(Result<(), &'static str>),
    /// Do nothing until this moment or until something happens.
    Wait(Moment),
}

/// What the gate shall do.
#[derive(Clone, Debug, PartialEq)]
pub enum GateChange {
    /// Open for this term until this moment. Then call [`Machine::opened`].
    Open(Term, Moment),
    /// Stay open until this moment.
    Extend(Moment),
    /// Admit no new writes, while admitted ones finish.
    Drain,
    End(Loss),
}

/// A lease call. A write swaps `seen`, or creates the lease if there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub what: LeaseCall,
    pub seen: Option<LeaseRecord>,
    /// None for a read.
    pub claim: Option<LeaseUpdate>,
    /// It takes the lease from a live holder.
    pub preempts: bool,
}

pub(super) const NEVER: Moment = Moment::from_nanos(u64::MAX);
pub(super) const ALWAYS: Moment = Moment::from_nanos(0);

/// What was seen of the lease.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    pub(super) known: ObservedLease,
    /// The largest version of the lease that was seen, of any object.
    pub(super) newest: u64,
}

/// The lease, as last seen.
#[derive(Clone, Debug, Default)]
pub(super) enum ObservedLease {
    #[default]
    Nothing,
    /// There is no lease.
    Absent {
        /// It may be created from this moment on, as far as the former writers allow. If the first look finds no lease: a
        /// pause after that, since its holder may be making it anew. If a lease that was known is deleted: at once.
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
        /// candidate's own duration counts. Without a holder: when the record was first seen.
        until: Moment,
        /// The record has not changed since this process first saw it, and it names this identity. An earlier process
        /// left it.
        inherited: bool,
    },
}

/// What delays an entry, and priority.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) precedence: Precedence,
    pub(super) spread: Spread,
    /// Until this moment the candidate leaves the lease to the others, since it has given way: a retry period after it has
    /// sent the release.
    pub(super) rests_until: Moment,
}

/// A call under way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) what: LeaseCall,
    pub(super) sent: Moment,
    /// The lease that was known then.
    pub(super) seen: Option<LeaseRecord>,
    /// Whether what was known might have been old.
    pub(super) doubted: bool,
}

/// What the candidate would do next, without the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Call(LeaseCall),
    /// A wait always ends after the present moment.
    Wait(Moment),
    GivenUp(Result<(), &'static str>),
}

// === impl Machine ===

impl Machine {
    pub fn new(identity: Identity, timing: LeaseTiming, priority: Option<Priority>, drain: Duration) -> Self {
        Self {
            me: Me { identity, timing, drain },
            observed: Observed::default(),
            claims: Claims::default(),
            formers: Formers::default(),
            own: OwnTerm::default(),
            health: ApiHealth::new(timing),
            entry: Entry::new(priority, timing),
            flight: None,
            order: Order::Contend,
        }
    }
}

// === impl Entry ===

impl Entry {
    pub(super) fn new(priority: Option<Priority>, timing: LeaseTiming) -> Self {
        Self {
            precedence: Precedence::new(priority, timing.lease_duration()),
            spread: Spread::new(timing.pause()),
            rests_until: ALWAYS,
        }
    }
}
