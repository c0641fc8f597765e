//! What may happen next.

use super::{
    client_go::Fate,
    fault::{BACK_AFTER, DEAF, FREEZES, Fault, HUNG, LAGS, OF_A_CALL},
    race::{ANEW, Race},
    rival::{NEVER, Rival},
    seat::{Silence, Wish},
};
use kube_leader_gate::{internal::WAITS_FOR, leadership::Moment, lease::LeaseRecord};
use serde_json::json;
use std::time::Duration;

/// The time that a user writes into the lease.
const SHORT: Duration = Duration::from_secs(1);

/// One step. The number is a candidate's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// It takes in the next news of its watch.
    Hear(usize),
    /// It does what is due, and its call is answered at once.
    Act(usize),
    /// The answer of its slow call comes.
    Answer(usize),
    /// Nothing happens until the next moment at which a candidate wants something.
    Wait,
    /// A frozen process runs again.
    Thaw(usize),
    /// A watch that told nothing tells its news, or shows the lease anew.
    Tell(usize),
    /// A candidate that was stopped contends again.
    Contend(usize),
    /// The API server gets what a candidate has sent long ago.
    LandLate(usize),
    /// One of the faults.
    Fault(Fault, usize),
}

impl Race {
    /// What happens if nothing more goes wrong: candidates hear and act at once, in their order. Then time passes. What
    /// a fault has begun ends when it is time, and not before all others have done what they wish.
    pub(super) fn usual(&self) -> Option<Step> {
        let awake = || (0..self.seats.len()).filter(|i| !self.seats[*i].is_frozen());
        let hears = awake().find(|i| self.has_news(*i)).map(Step::Hear);
        let acts = || {
            let wishes = |i: &usize| matches!(self.wish(*i), Wish::Now { .. });
            awake().find(wishes).map(Step::Act)
        };
        let ends = || {
            self.seats.iter().enumerate().find_map(|(i, seat)| {
                let due = |at: Option<Moment>| at.is_some_and(|at| at <= self.now);
                if due(seat.frozen_until) {
                    Some(Step::Thaw(i))
                } else if due(seat.answered_at) && !seat.is_frozen() {
                    Some(Step::Answer(i))
                } else if due(seat.silence.map(|silence| silence.until)) && !seat.is_frozen() {
                    Some(Step::Tell(i))
                } else {
                    (due(seat.back_at) && !seat.is_frozen()).then_some(Step::Contend(i))
                }
            })
        };
        hears.or_else(acts).or_else(ends).or_else(|| self.next_moment().map(|_| Step::Wait))
    }

    /// All that may happen next.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::from_iter(self.usual());
        steps.extend((0..self.server.late.len()).map(Step::LandLate));
        if self.faults > 0 {
            self.offer_faults(&mut steps);
        }
        steps
    }

    fn offer_faults(&self, steps: &mut Vec<Step>) {
        for (i, seat) in self.seats.iter().enumerate().filter(|(_, seat)| !seat.is_frozen()) {
            let mut offer = |fault| steps.push(Step::Fault(fault, i));
            FREEZES.into_iter().for_each(&mut offer);
            if self.shows_its_holder() || self.terms == 0 {
                offer(Fault::Restart);
            }
            if matches!(self.wish(i), Wish::Now { calls: true }) {
                let faults = if seat.ours().is_some() { &OF_A_CALL[..] } else { &OF_A_CALL[..2] };
                faults.iter().copied().for_each(&mut offer);
                if seat.ours().is_some() && seat.can_write(self.now) {
                    offer(Fault::HungCalls);
                }
            }
            if self.has_news(i) {
                offer(Fault::Relist);
            }
            if seat.ours().is_some_and(|rival| rival.inbox.len() > 1) {
                offer(Fault::Merge);
            }
            if seat.ours().is_some() && seat.silence.is_none() {
                offer(Fault::Deaf);
                LAGS.into_iter().for_each(&mut offer);
            }
            if !seat.has_given_up() {
                offer(Fault::Stop);
            }
            // client-go leaves it to its user to wait for a write that was not answered.
            if seat.ours().is_some() && seat.can_write(self.now) {
                offer(Fault::LostWrite);
                offer(Fault::StopCut);
                offer(Fault::GiveWay);
            }
        }
        if self.server.lease.is_some() {
            steps.push(Step::Fault(Fault::Theft, 0));
            steps.push(Step::Fault(Fault::Copy, 0));
            if self.all_know() {
                let edits = [Fault::Deletion, Fault::Anew, Fault::Freed, Fault::Shortened];
                steps.extend(edits.map(|fault| Step::Fault(fault, 0)));
                if self
                    .server
                    .lease
                    .as_ref()
                    .is_some_and(|it| it.annotation(WAITS_FOR).is_some_and(|it| it != "{}"))
                {
                    steps.push(Step::Fault(Fault::Third(2), 0));
                }
            }
        }
    }

    /// Not after a deletion, nor after an edit of its time: a process that begins then cannot know how long a holder may
    /// still be writing.
    fn shows_its_holder(&self) -> bool {
        let made_anew = |lease: &LeaseRecord| lease.uid().starts_with(ANEW) && lease.holder().is_none();
        let shortened = |lease: &LeaseRecord| lease.holder().is_some() && lease.duration() == Some(SHORT);
        self.server.lease.as_ref().is_some_and(|lease| !made_anew(lease) && !shortened(lease))
    }

    /// Whether all candidates know the lease as it is. Then what a user does to it hides no holder from them. client-go
    /// promises nothing.
    fn all_know(&self) -> bool {
        let version = |lease: Option<&LeaseRecord>| lease.map(|it| it.resource_version().to_owned());
        let knows = |rival: &Rival| version(rival.machine.record()) == version(self.server.lease.as_ref());
        self.seats.iter().all(|seat| seat.ours().is_some_and(knows))
    }

    /// What the step makes of this state.
    pub(super) fn after(&self, step: Step) -> Self {
        let mut next = self.clone();
        next.take(step);
        next
    }

    /// The step happens.
    pub(super) fn take(&mut self, step: Step) {
        (self.fault, self.hangs) = (None, None);
        self.landed_late = matches!(step, Step::LandLate(_));
        match step {
            Step::Hear(i) => self.seats[i].hear(self.now),
            Step::Act(i) if self.seats[i].hung > 0 && self.calls(i) => self.hang(i),
            Step::Act(i) if self.latency > 0 && self.calls(i) => self.begin(i, self.latency),
            Step::Act(i) => self.act(i, Fate::Answered),
            Step::Answer(i) => self.answer(i),
            Step::Wait => self.now = self.next_moment().unwrap_or(self.now),
            Step::Thaw(i) => self.seats[i].frozen_until = None,
            Step::Tell(i) if self.seats[i].silence.is_some_and(|silence| silence.loses_news) => {
                self.relist(i);
            }
            Step::Tell(i) => self.seats[i].silence = None,
            Step::Contend(i) => self.seats[i].contends_again(self.now),
            Step::LandLate(which) => self.writes(None, |race| race.server.land_late(which)),
            Step::Fault(fault, i) => {
                if fault == Fault::HungCalls && self.suffered == 0 && self.goes_on_leading(i) {
                    self.hangs = Some(i);
                }
                self.faults = self.faults.saturating_sub(1);
                self.suffered += 1;
                self.fault = Some(fault);
                self.suffer(fault, i);
            }
        }
        self.settle();
    }

    /// The answer of its call comes, unless it waits no longer.
    fn answer(&mut self, i: usize) {
        let now = self.now;
        let lost = self.is_overdue(i);
        self.seats[i].answered_at = None;
        self.writes(Some(i), |race| race.seats[i].answer(&mut race.server, lost, now));
    }

    fn act(&mut self, i: usize, fate: Fate) {
        let now = self.now;
        self.writes(Some(i), |race| race.seats[i].act(&mut race.server, fate, now));
        // client-go goes on with the term of an earlier process of its name.
        if self.seats[i].ours().is_none() && self.seats[i].can_write(now) {
            self.author = Some((i, self.seats[i].life));
        }
    }

    /// Its call reaches the API server, and is answered after so many seconds, or given up before.
    fn begin(&mut self, i: usize, seconds: u8) {
        let now = self.now;
        self.writes(Some(i), |race| race.seats[i].begin(&mut race.server, now));
        let gives_up = self.seats[i].gives_up_at(now);
        self.seats[i].answered_at = Some(self.later(seconds).min(gives_up));
    }

    /// The next of its calls hangs until it gives it up. The API server has not carried it out by then.
    fn hang(&mut self, i: usize) {
        self.seats[i].hung -= 1;
        self.seats[i].sends(NEVER, self.now);
    }

    fn silence(&mut self, i: usize, seconds: u8, loses_news: bool) {
        self.seats[i].silence = Some(Silence { until: self.later(seconds), loses_news });
    }

    /// Its watch shows the lease as it is. What it has not told is lost.
    fn relist(&mut self, i: usize) {
        let lease = self.server.lease.clone();
        self.seats[i].silence = None;
        self.seats[i].with_ours(self.now, |rival, local| rival.relists(lease, local));
    }

    /// Whether this candidate of ours would call the API server now.
    fn calls(&self, i: usize) -> bool {
        self.seats[i].ours().is_some() && self.wish(i) == Wish::Now { calls: true }
    }

    fn later(&self, seconds: u8) -> Moment {
        self.now.saturating_add(Duration::from_secs(seconds.into()))
    }

    fn suffer(&mut self, fault: Fault, i: usize) {
        let now = self.now;
        match fault {
            Fault::Freeze(seconds) => self.seats[i].frozen_until = Some(self.later(seconds)),
            Fault::SlowCall(seconds) => self.begin(i, seconds),
            Fault::LateCall(seconds) => {
                let at = self.later(seconds);
                self.seats[i].sends(at, now);
            }
            Fault::LostAnswer => self.act(i, Fate::AnswerLost),
            Fault::LostCall => self.act(i, Fate::Delayed),
            Fault::HungCalls => {
                self.seats[i].hung = HUNG;
                self.hang(i);
            }
            Fault::DoubleCall => {
                self.begin(i, 0);
                self.writes(Some(i), |race| race.seats[i].lands_again(&mut race.server));
                self.answer(i);
            }
            Fault::Relist => self.relist(i),
            Fault::Deaf => self.silence(i, DEAF, true),
            Fault::Lag(seconds) => self.silence(i, seconds, false),
            Fault::LostWrite => {
                self.seats[i].with_ours(now, |rival, local| rival.write_ends(false, local));
            }
            Fault::Stop | Fault::StopCut => {
                self.writes(Some(i), |race| {
                    race.seats[i].stop(&mut race.server, fault == Fault::StopCut, now);
                });
                self.seats[i].back_at = Some(self.later(BACK_AFTER));
            }
            Fault::Restart => self.writes(None, |race| race.seats[i].restart(&mut race.server, now)),
            Fault::GiveWay => self.seats[i].with_ours(now, Rival::give_way),
            Fault::Theft => self.put(|object| {
                object["spec"]["holderIdentity"] = "thief".into();
                let count = object["spec"]["leaseTransitions"].as_u64().unwrap_or_default();
                object["spec"]["leaseTransitions"] = (count + 1).into();
            }),
            Fault::Freed => self.put(|object| object["spec"]["holderIdentity"] = "".into()),
            Fault::Shortened => {
                // It still is the holder's.
                let (author, overtaken) = (self.author, self.overtaken);
                self.put(|object| object["spec"]["leaseDurationSeconds"] = SHORT.as_secs().into());
                (self.author, self.overtaken) = (author, overtaken);
            }
            Fault::Third(seconds) => {
                let time = format!("third at {}", self.server.version);
                self.put(|object| {
                    let count = object["spec"]["leaseTransitions"].as_u64().unwrap_or_default() + 1;
                    object["spec"] = json!({ "holderIdentity": "third", "leaseDurationSeconds": seconds,
                        "leaseTransitions": count, "acquireTime": time, "renewTime": time });
                });
            }
            Fault::Merge => {
                if let Some(rival) = self.seats[i].ours_mut() {
                    rival.inbox = rival.inbox.pop_back().into_iter().collect();
                }
            }
            Fault::Deletion => self.delete(),
            Fault::Anew => self.make_anew(),
            Fault::Copy => {
                let copied_at = self.server.version;
                self.put(|object| object["metadata"]["uid"] = format!("copied-at-{copied_at}").into());
            }
        }
    }
}
