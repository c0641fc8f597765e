//! One state of all candidates, their network and their API server.

use super::{
    fault::Fault,
    rival::at,
    seat::{Seat, Wish},
    server::Server,
};
use kube_leader_gate::{
    leadership::Moment,
    lease::{LeaseEvent, LeaseRecord},
};
use ring::digest::{SHA256, digest};
use std::hash::{Hash, Hasher};

/// The first version of the lease. A third digit comes soon after a run begins, and not before: versions are
/// numbers, not texts.
const FIRST: u64 = 75;

/// The uid of a lease that another program has made anew begins so.
pub(super) const ANEW: &str = "made-anew";

/// One state.
#[derive(Clone, Debug)]
pub(super) struct Race {
    /// The time of the API server.
    pub(super) now: Moment,
    pub(super) server: Server,
    pub(super) seats: Vec<Seat>,
    /// How many seconds the API server takes for each answer to a candidate of ours.
    pub(super) latency: u8,
    /// How many more faults may happen.
    pub(super) faults: u8,
    /// How many have happened.
    pub(super) suffered: u8,
    /// The last step was a claim that came late.
    pub(super) landed_late: bool,
    /// The fault that the last step was.
    pub(super) fault: Option<Fault>,
    /// The leader whose calls hang since the last step, if it would lead on without that.
    pub(super) hangs: Option<usize>,
    /// Which process the lease belongs to: the seat, and its life.
    pub(super) author: Option<(usize, u8)>,
    /// The seat that it belonged to before, if it was taken without a release.
    pub(super) overtaken: Option<usize>,
    /// Who led last, and how often that changed.
    pub(super) led: Option<usize>,
    pub(super) terms: u8,
    /// Whether a candidate leads, and whether the last step ended that.
    pub(super) leads: bool,
    pub(super) ended: bool,
    /// The rule that a step has broken.
    pub(super) broken: Option<&'static str>,
}

impl Race {
    pub(super) fn new(seats: Vec<Seat>, faults: u8) -> Self {
        Self {
            now: at(0),
            server: Server { version: FIRST, ..Server::default() },
            seats,
            latency: 0,
            faults,
            suffered: 0,
            landed_late: false,
            fault: None,
            hangs: None,
            author: None,
            overtaken: None,
            led: None,
            terms: 0,
            leads: false,
            ended: false,
            broken: None,
        }
    }

    pub(super) fn wish(&self, i: usize) -> Wish {
        self.seats[i].wish(self.now)
    }

    /// Whether news waits for this candidate.
    pub(super) fn has_news(&self, i: usize) -> bool {
        self.seats[i].silence.is_none() && self.seats[i].ours().is_some_and(|rival| !rival.inbox.is_empty())
    }

    /// Tells the watches.
    pub(super) fn tell(&mut self, event: &LeaseEvent) {
        for rival in self.seats.iter_mut().filter_map(Seat::ours_mut) {
            rival.inbox.push_back(event.clone());
        }
    }

    /// Runs `step` of a candidate, and tells the watches what it wrote.
    pub(super) fn writes(&mut self, actor: Option<usize>, step: impl FnOnce(&mut Self)) {
        let before = self.server.lease.clone();
        let version = self.server.version;
        step(self);
        if self.server.version == version {
            return;
        }
        let Some(lease) = self.server.lease.clone() else { return };
        self.judge_write(actor, before.as_ref(), &lease);
        self.tell(&LeaseEvent::Seen(lease));
    }

    /// A lease of another program's making.
    pub(super) fn put(&mut self, change: impl FnOnce(&mut serde_json::Value)) {
        let Some(lease) = self.server.lease.clone() else { return };
        let mut object = lease.into_json();
        change(&mut object);
        (self.author, self.overtaken) = (None, None);
        self.server.put(object);
        let event = LeaseEvent::Seen(self.server.lease.clone().unwrap());
        self.tell(&event);
    }

    pub(super) fn delete(&mut self) {
        let Some(last) = self.server.delete() else { return };
        (self.author, self.overtaken) = (None, None);
        self.tell(&LeaseEvent::Deleted(last));
    }

    /// Deletes the lease, and makes a free one.
    pub(super) fn make_anew(&mut self) {
        let Some(mut object) = self.server.lease.clone().map(LeaseRecord::into_json) else { return };
        self.delete();
        object["metadata"]["uid"] = format!("{ANEW}-at-{}", self.server.version).into();
        object["metadata"]["annotations"] = serde_json::json!({});
        object["spec"]["holderIdentity"] = "".into();
        self.server.put(object);
        let event = LeaseEvent::Seen(self.server.lease.clone().unwrap());
        self.tell(&event);
    }

    /// The next moment at which anything happens by itself.
    pub(super) fn next_moment(&self) -> Option<Moment> {
        let due = self.seats.iter().flat_map(|seat| {
            let wish = match seat.wish(self.now) {
                Wish::Wait(until) if !seat.is_frozen() => Some(seat.global(until)),
                _ => None,
            };
            let told = seat.silence.map(|silence| silence.until);
            [wish, seat.frozen_until, seat.answered_at, told, seat.back_at]
        });
        due.flatten().filter(|due| *due > self.now).min()
    }

    /// Whether this candidate waits no longer for the answer of its call.
    pub(super) fn is_overdue(&self, i: usize) -> bool {
        let local = self.seats[i].local(self.now);
        let patience = self.seats[i].timing().call_timeout();
        self.seats[i].call_sent().is_some_and(|sent| sent.saturating_add(patience) <= local)
    }

    /// Notes what has happened by itself: leaders write, terms end, calls can land no more.
    pub(super) fn settle(&mut self) {
        for seat in &mut self.seats {
            seat.keep_writing(self.now);
        }
        let broken = self.seats.iter().filter_map(Seat::ours).find_map(|rival| rival.broken);
        self.broken = self.broken.or(broken);
        let version = self.server.lease.as_ref().map(|lease| lease.resource_version().to_owned());
        let may_land = |seen: &Option<LeaseRecord>| match seen {
            Some(seen) => Some(seen.resource_version()) == version.as_deref(),
            // It creates the lease, perhaps after a deletion.
            None => true,
        };
        self.server.late.retain(|(seen, _)| may_land(seen));
        let leads = (0..self.seats.len()).find(|i| self.seats[*i].can_write(self.now));
        if leads.is_some() && leads != self.led {
            self.led = leads;
            self.terms = self.terms.saturating_add(1);
        }
        self.ended = self.leads && leads.is_none();
        self.leads = leads.is_some();
    }
}

impl Hash for Race {
    /// By its text: it shows everything that a candidate decides by. The text is long, so optimised code shortens it.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(digest(&SHA256, format!("{self:?}").as_bytes()).as_ref());
    }
}

impl PartialEq for Race {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}
