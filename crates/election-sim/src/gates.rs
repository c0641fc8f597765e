//! The gates, and the writes that they admit.

use crate::{
    candidate::{Life, moment},
    world::{Event, Landing, World},
};
use kube_leader_gate::{
    internal::{Gate, Order},
    leadership::Loss,
};

/// What clocks that run 1 % apart take from the time in which a write may land.
const DRIFT: u64 = 150;

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
            self.opened += 1;
            self.say(|_| format!("{} OPEN", p + 1));
        }
        if !matches!(gate, Gate::Shut(_)) {
            return;
        }
        let now = self.all[p].local(self.now);
        let (margin, is_ours) = (self.all[p].margin(), self.all[p].is_ours());
        let cut_off = !std::mem::take(&mut self.all[p].writes).is_empty();
        if cut_off {
            self.all[p].settle_at = moment(now + margin); // their outcome is unknown
        }
        if is_ours && !matches!(before, Gate::Shut(_)) {
            self.say(|_| format!("{} shut: {gate:?}", p + 1));
            if self.all[p].leading_only && self.all[p].life == Life::Up {
                self.all[p].obey(Order::Hold, self.now);
                let grace = self.rng.u64(..3_000);
                self.at(grace, Event::Contend { p });
            }
        }
    }

    pub fn begin_write(&mut self, p: usize) {
        if !self.all[p].is_up() || self.now < self.all[p].frozen_until {
            return;
        }
        self.apply_gate(p);
        if !matches!(self.all[p].gate, Gate::Open { .. }) {
            return;
        }
        self.ids += 1;
        let (write, it) = (self.ids, &self.all[p]);
        let (process, identity, claim, is_ours) = (it.process, it.identity, it.claim, it.is_ours());
        let most = it.margin() - DRIFT;
        let lands = if !self.is_calm() && self.one_in(4) {
            most - 1 - self.rng.u64(..most) * self.rng.u64(..2)
        } else {
            1 + self.rng.u64(..20)
        };
        self.landing.push(Landing { identity, claim, at: self.now + lands });
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
