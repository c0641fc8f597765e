//! Calls to the API server, their answers, and everything else that happens to a candidate.

use crate::{
    candidate::{Life, Run, moment},
    server::{Fact, altered, bit, version},
    world::{Claimed, Event, World},
};
use kube_leader_gate::{
    internal::{Call, Intent, LeaseCall, Next, WatchNews},
    lease::{ErrLock, ErrLockKind, LeaseEvent, LeaseRecord},
};

type Answer = Result<Option<LeaseRecord>, ErrLock>;

fn error(kind: ErrLockKind) -> ErrLock {
    ErrLock::new(kind, "as the world has it")
}

impl World {
    pub fn poll(&mut self, p: usize) {
        if !self.all[p].is_up() || self.now < self.all[p].frozen_until {
            return;
        }
        let wall = self.wall(p);
        let now = self.now;
        // As the task does in each turn: the orders, the gate, what the process does, and then the machine.
        self.go_on(p);
        self.go_on(p); // a drain that finds no write is over
        self.all[p].take_orders();
        self.apply_gate(p);
        match self.all[p].poll(wall, now) {
            Next::Call(call) => self.send(p, call),
            Next::Wait(until) => {
                let it = &self.all[p];
                let next = if let Run::WindsDown { until } = it.run { until.max(now + 1) } else { u64::MAX };
                let soon = if matches!(it.run, Run::Drains { .. }) { now + 50 } else { u64::MAX };
                self.all[p].poll_at = it.world(until).max(now + 1).min(next).min(soon);
            }
            Next::Done(_) if self.all[p].life == Life::Up => {
                // It has stood down, and contends again.
                self.all[p].run = Run::Free;
                self.all[p].poll_at = now + 1;
            }
            Next::Done(how) => {
                self.say(|_| format!("{} done {how:?}", p + 1));
                if self.rollout.of == Some(p) {
                    self.rollout.released = how.is_ok();
                }
                self.down(p);
                if self.is_calm() {
                    self.all[p].life = Life::Gone;
                }
                let (after, same) = (self.rng.u64(..2_000), self.one_in(3));
                self.at(after, Event::Restart { p, same });
            }
        }
        self.apply_gate(p);
    }

    /// What the wall clock of this process shows.
    fn wall(&mut self, p: usize) -> jiff::Timestamp {
        let millis = (1_700_000_000_000 + self.now).saturating_add_signed(self.all[p].clock.skew);
        let micros = i64::try_from(millis * 1_000 + self.rng.u64(..1_000)).expect("a year in this age");
        jiff::Timestamp::from_microsecond(micros).expect("a year in this age")
    }

    fn send(&mut self, p: usize, call: Call) {
        self.ids += 1;
        let (id, process, told) = (self.ids, self.all[p].process, self.all[p].seen);
        (self.all[p].call, self.all[p].poll_at) = (id, self.now + 1);
        let it = &self.all[p];
        if it.is_ours() {
            if call.what == LeaseCall::Acquire && self.now < it.away_until {
                self.broken.get_or_insert(format!("{} acquires while it stays away", p + 1));
            }
            if call.what == LeaseCall::Acquire && it.intent() != Intent::Contend {
                self.broken.get_or_insert(format!("{} acquires under an order", p + 1));
            }
            if call.what == LeaseCall::Release && it.intent() == Intent::Keep {
                self.broken.get_or_insert(format!("{} releases while it works", p + 1));
            }
        }
        let in_second = self.all[p].calls(self.now);
        if self.all[p].is_ours() {
            self.most = self.most.max(in_second);
        }
        self.say(|_| {
            let seen = call.seen.as_ref().map_or("none", |it| it.resource_version());
            format!("{} sends {} over {seen}", p + 1, call.what.as_str())
        });
        let patience = u64::try_from(self.all[p].timing.call_timeout().as_millis()).expect("a small number");
        let cut = self.now < self.all[p].cut_until;
        let (to, back) = (self.delay(), self.delay());
        let arrives = !cut || self.rng.u64(..10) >= 8;
        if arrives && !self.is_lost(60) {
            let lost = cut || self.is_lost(60);
            let answer_after = (!lost).then_some(back);
            self.at(to, Event::Request { p, process, call, id, answer_after, told });
        }
        let answer = Err(error(ErrLockKind::Timeout));
        self.at(patience, Event::Answer { p, process, id, answer });
    }

    fn carry_out(&mut self, p: usize, process: u64, call: &Call, told: u128) -> Answer {
        let is_ours = self.all[p].is_ours();
        let Some(update) = &call.update else { return self.read(p) };
        if self.now < self.all[p].no_writes_until || self.is_lost(80) {
            return Err(error(ErrLockKind::Forbidden));
        }
        if !self.server.accepts(call.seen.as_ref()) {
            let gone = self.server.lease.is_none() && call.seen.is_some();
            return Err(error(if gone { ErrLockKind::NotFound } else { ErrLockKind::Conflict }));
        }
        let was = self.server.fact();
        let told = if is_ours { told } else { 0 };
        let named = !is_ours && call.what == LeaseCall::Renew && was.claim != Some(self.all[p].claim);
        let fact = match call.what {
            _ if named => {
                let id = self.claims.len();
                self.claims.push(Claimed { identity: self.all[p].identity, other: true });
                self.all[p].claim = id;
                Fact { claim: Some(id), told }
            }
            LeaseCall::Acquire => {
                let id = self.claims.len();
                self.claims.push(Claimed { identity: self.all[p].identity, other: !is_ours });
                if self.all[p].process == process {
                    self.all[p].claim = id;
                }
                if is_ours {
                    self.unseen |= self.edited & !told;
                }
                Fact { claim: Some(id), told }
            }
            LeaseCall::Renew => Fact { claim: Some(self.all[p].claim), told },
            LeaseCall::Release => Fact { claim: None, told },
            _ => was,
        };
        let mut object = self.server.written(call.seen.as_ref(), update);
        if self.now < self.alter_until {
            object = altered(object, self.strips);
        }
        Ok(self.put(Some(object), fact))
    }

    fn read(&mut self, p: usize) -> Answer {
        if self.now < self.all[p].no_reads_until {
            return Err(error(ErrLockKind::Forbidden));
        }
        let n = self.server.past.len();
        if self.now < self.lag_until && self.one_in(2) && n > 0 {
            let back = self.rng.usize(..n.min(8));
            return Ok(self.server.past[n - 1 - back].clone());
        }
        Ok(self.server.lease.clone())
    }

    /// The process learns of a lease, if it does not know a newer one.
    fn shown(&mut self, p: usize, record: &LeaseRecord) {
        let version = version(record);
        let knows = self.all[p].knows().unwrap_or(0);
        if let Some(fact) = self.server.facts.get(&version).filter(|_| version >= knows) {
            self.all[p].seen |= bit(fact.claim) | fact.told;
        }
    }

    pub fn happen(&mut self, event: Event) {
        if let Event::Answer { p, process, .. }
        | Event::News { p, process, .. }
        | Event::Answered { p, process, .. } = &event
        {
            let it = &self.all[*p];
            if it.process != *process || !it.is_up() {
                return;
            }
            if self.now < it.frozen_until {
                let wakes = it.frozen_until;
                return self.events.push((wakes, event));
            }
        }
        let now = self.now;
        match event {
            Event::Request { p, process, call, id, answer_after, told } => {
                let answer = self.carry_out(p, process, &call, told);
                if let Some(after) = answer_after {
                    self.at(after, Event::Answer { p, process, id, answer });
                }
            }
            Event::Answer { p, id, answer, .. } => {
                if self.all[p].call != id {
                    return;
                }
                self.all[p].call = 0;
                self.say(|_| format!("{} <- {}", p + 1, in_short(&answer)));
                let record = answer.as_ref().ok().cloned().flatten();
                if let Some(it) = &record {
                    self.shown(p, it);
                }
                self.all[p].answered(answer, now);
                // After a restore of a backup, a read with a lower version counts, too.
                if let Some(it) = &record {
                    self.shown(p, it);
                }
                self.all[p].poll_at = now;
                self.apply_gate(p);
            }
            Event::News { p, event, .. } => {
                let (LeaseEvent::Seen(record) | LeaseEvent::Deleted(record)) = &event else { return };
                self.shown(p, record);
                self.all[p].hears(WatchNews::Event(event), now);
                self.apply_gate(p);
            }
            Event::Answered { p, write, lost, .. } => self.end_write(p, write, lost),
            Event::Restart { p, same } => self.restart(p, same),
            Event::Stop { p } => {
                if self.all[p].life == Life::Up {
                    self.stop(p);
                }
            }
            Event::End { p } => {
                self.say(|_| format!("{} ends", p + 1));
                self.down(p);
                self.all[p].life = Life::Gone;
            }
            Event::Wake { p } => self.all[p].poll_at = now,
            Event::Watch { p } => {
                self.all[p].watches = true;
                self.all[p].hears(WatchNews::Up, now);
                // It begins with the present lease.
                if let Some(present) = self.server.lease.clone() {
                    self.shows(p, LeaseEvent::Seen(present));
                }
            }
        }
    }

    fn end_write(&mut self, p: usize, write: u64, lost: bool) {
        let (now, margin) = (self.all[p].local(self.now), self.all[p].margin());
        let it = &mut self.all[p];
        if !it.writes.contains(&write) {
            return;
        }
        it.writes.retain(|other| *other != write);
        if lost {
            it.settle_at = it.settle_at.max(moment(now + margin));
        }
        it.poll_at = self.now;
    }

    fn restart(&mut self, p: usize, same: bool) {
        if self.all[p].life != Life::Down {
            return;
        }
        let (process, n) = (self.next_process(), self.processes());
        let same_pod = same && !self.one_in(3) || !self.all[p].is_ours();
        let identity = if same || same_pod { self.all[p].identity } else { n * 100 };
        let pod = if same_pod { self.all[p].pod } else { n * 100 };
        self.all[p].restart((identity, pod), process, n * 131 % 100_000, self.now);
        if same && self.one_in(2) {
            let soon = self.rng.u64(..800);
            self.at(soon, Event::Stop { p });
        }
        self.say(|_| format!("{} begins as {identity} in {pod}", p + 1));
    }
}

fn in_short(answer: &Answer) -> String {
    match answer {
        Ok(Some(record)) => short(record),
        Ok(None) => "no lease".into(),
        Err(error) => error.to_string(),
    }
}

/// A lease in a line.
pub fn short(record: &LeaseRecord) -> String {
    let object = record.clone().into_json();
    let (metadata, spec) = (&object["metadata"], &object["spec"]);
    let (uid, version, duration) = (record.uid(), record.resource_version(), &spec["leaseDurationSeconds"]);
    let (time, annotations) = (&spec["renewTime"], &metadata["annotations"]);
    let (holder, term) = (record.holder(), record.transitions());
    format!("{uid} v{version} {holder:?} {duration} s, term {term}, {time}, {annotations}")
}
