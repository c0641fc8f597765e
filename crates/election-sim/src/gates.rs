//! The gates, and the writes that they admit.

use crate::{
    candidate::{Life, Run, moment},
    world::{Event, Landing, World},
};
use kube_leader_gate::{internal::Gate, leadership::Loss};

/// What clocks that run 1 % apart take from the time in which a write may land.
const DRIFT: u64 = 150;
/// Admitted writes may take so long to finish in a stop.
const LONGEST_DRAIN: u64 = 1_000;

impl World {
    /// The process is gone, with its gate and its writes.
    pub fn down(&mut self, p: usize) {
        let it = &mut self.all[p];
        if it.is_up() {
            (it.life, it.gate) = (Life::Down, Gate::Shut(Loss::Abandoned));
            it.writes.clear();
        }
    }

    /// Does as the task does after each step.
    pub fn apply_gate(&mut self, p: usize) {
        if !self.all[p].is_up() {
            return;
        }
        let gate = self.all[p].gate_now(self.now);
        let before = std::mem::replace(&mut self.all[p].gate, gate.clone());
        let is_open = |gate: &Gate| matches!(gate, Gate::Open { .. });
        if is_open(&gate) && !is_open(&before) {
            if self.all[p].is_ours() && self.all[p].run != Run::Free {
                // The grantor lets no term begin.
                self.all[p].end_term();
                return;
            }
            self.opened += 1;
            self.say(|_| format!("{} OPEN", p + 1));
        }
        if !matches!(gate, Gate::Shut(_)) {
            return;
        }
        let now = self.all[p].local(self.now);
        let margin = self.all[p].margin();
        let cut_off = !std::mem::take(&mut self.all[p].writes).is_empty();
        if cut_off {
            self.all[p].settle_at = moment(now + margin); // their outcome is unknown
        }
        if self.all[p].is_ours() && !matches!(before, Gate::Shut(_)) {
            self.say(|_| format!("{} shut: {gate:?}", p + 1));
        }
    }

    /// The process around the elector goes on: its work begins and ends, and a stop has its order.
    pub fn go_on(&mut self, p: usize) {
        let (now, longest) = (self.now, if self.is_calm() { 50 } else { 3_000 });
        if !self.all[p].is_ours() {
            return;
        }
        let grace = self.rng.u64(..longest);
        // The task of the work may run later than the one of the election.
        let is_late = self.one_in(3);
        let it = &self.all[p];
        let stops = matches!(it.life, Life::Stopping { .. });
        let (is_open, is_shut) = (it.is_open(now), matches!(it.gate, Gate::Shut(_)));
        let settled = it.settle_at <= it.now(now);
        self.all[p].run = match it.run {
            Run::Free if stops => Run::Drains { since: now },
            // New work waits for the unanswered writes of earlier work.
            Run::Free if it.leading_only && is_open && settled => Run::Works,
            Run::Works if (stops || !is_open) && !is_late => Run::WindsDown { until: now + grace },
            Run::WindsDown { until } if now < until => it.run,
            // A term that is given away still goes on.
            Run::WindsDown { .. } if stops || !is_shut => Run::Drains { since: now },
            Run::WindsDown { .. } => Run::Free,
            Run::Drains { since } if it.writes.is_empty() || now >= since + LONGEST_DRAIN => {
                if !it.writes.is_empty() {
                    let margin = it.margin();
                    let local = it.local(now);
                    let it = &mut self.all[p];
                    it.writes.clear();
                    it.settle_at = moment(local + margin);
                    it.end_term();
                }
                Run::Releases
            }
            run => run,
        };
    }

    pub fn begin_write(&mut self, p: usize) {
        if !self.all[p].is_up() || self.now < self.all[p].frozen_until || !self.all[p].admits() {
            return;
        }
        self.apply_gate(p);
        if !matches!(self.all[p].gate, Gate::Open { .. }) {
            return;
        }
        self.ids += 1;
        let (write, it) = (self.ids, &self.all[p]);
        let (process, pod, claim, is_ours) = (it.process, it.pod, it.claim, it.is_ours());
        let most = it.margin() - DRIFT;
        let lands = if !self.is_calm() && self.one_in(4) {
            most - 1 - self.rng.u64(..most) * self.rng.u64(..2)
        } else {
            1 + self.rng.u64(..20)
        };
        self.landing.push(Landing { pod, claim, at: self.now + lands });
        if !is_ours {
            return;
        }
        self.all[p].writes.push(write);
        if self.now < self.all[p].cut_until || self.is_lost(30) {
            // It ends without an answer, at some time.
            let longest = if self.one_in(50) { 30_000 } else { 400 };
            let gives_up = self.rng.u64(..longest);
            self.at(gives_up, Event::Answered { p, process, write, lost: true });
        } else {
            self.at(lands + 1, Event::Answered { p, process, write, lost: false });
        }
    }
}
