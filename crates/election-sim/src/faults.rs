//! What goes wrong with processes, calls and watches.

use crate::{
    candidate::{Life, name},
    world::{Event, FAULTS_END, World},
};
use kube_leader_gate::{
    internal::{Gate, WatchNews},
    leadership::Term,
    lease::LeaseRecord,
};

impl World {
    pub fn fault(&mut self) {
        let p = self.rng.usize(..self.all.len());
        let long = 500 + self.rng.u64(..6_000);
        let until = self.now + long;
        let is_up = self.all[p].life == Life::Up;
        match self.rng.u64(..31) {
            0..3 => {
                self.all[p].frozen_until = until;
                self.at(long, Event::Wake { p });
                self.say(|_| format!("{} frozen for {long}", p + 1));
            }
            3..6 => {
                self.all[p].cut_until = until;
                self.say(|_| format!("{} cut off for {long}", p + 1));
            }
            6 | 7 if is_up => {
                self.say(|_| format!("{} killed", p + 1));
                self.down(p);
                let (after, same) = (self.rng.u64(..2_000), self.one_in(2));
                self.at(after, Event::Restart { p, same });
            }
            8..11 if is_up => {
                self.stop(p);
                if self.one_in(6) {
                    self.all[p].cut_until = self.now + 15_000;
                }
            }
            11 => {
                self.all[p].no_writes_until = until;
                self.say(|_| format!("{} may not write for {long}", p + 1));
            }
            12 => {
                self.all[p].no_reads_until = until;
                self.say(|_| format!("{} may not read for {long}", p + 1));
            }
            13 if self.now > self.edited_at + 8_000 => {
                self.lag_until = until;
                self.say(|_| format!("reads lag for {long}"));
            }
            14 if self.one_in(3) => {
                (self.alter_until, self.strips) = (until, self.one_in(2));
                self.say(|_| format!("what is stored is changed for {long}"));
            }
            15 if is_up
                && self.twins.is_empty()
                && self.all[p].is_ours()
                && self.now < FAULTS_END - 15_000 =>
            {
                self.twin(p, long);
            }
            16..22 => self.edit(),
            22 | 23 if self.all[p].watches => {
                self.all[p].watches = false;
                self.all[p].hears(WatchNews::Down(None), self.now);
                self.events.retain(|(_, it)| !matches!(it, Event::News { p: q, .. } if *q == p));
                self.at(long, Event::Watch { p });
                self.say(|_| format!("the watch of {} breaks for {long}", p + 1));
            }
            24 | 25 if is_up => {
                self.all[p].crowded_until = until;
                self.at(long, Event::Wake { p });
                self.say(|_| format!("{} waits for a place for {long}", p + 1));
            }
            26..29 if is_up => self.give_way(p),
            29.. if is_up => {
                // Its program lets it lead no more. A holder goes on for a while, and then gives way.
                self.all[p].away_until = until;
                self.at(long, Event::Wake { p });
                self.say(|_| format!("{} stays away for {long}", p + 1));
                if self.one_in(2) {
                    self.give_way(p);
                }
            }
            _ => {}
        }
    }

    /// The program gives way, or a lock layer while the answer to a claim is on its way.
    fn give_way(&mut self, p: usize) {
        let stored = self.server.lease.as_ref().filter(|it| it.holder() == Some(&name(self.all[p].identity)));
        self.all[p].asked = match &self.all[p].gate {
            Gate::Open { term, .. } => Some(Term::new(term.lease_uid(), term.transitions())),
            _ => stored.map(LeaseRecord::term),
        };
        self.all[p].poll_at = self.now;
        self.say(|_| format!("{} gives way", p + 1));
    }

    /// A second process begins with the identity of `p`, in the same pod or in another one. One of the two ends.
    fn twin(&mut self, p: usize, long: u64) {
        let same_pod = self.one_in(2);
        let process = self.processes();
        let (q, it) = (self.all.len(), &self.all[p]);
        let (identity, rank, timing) = (it.identity, it.rank, it.timing);
        let pod = if same_pod { it.pod } else { process * 1_000 };
        self.add((identity, pod), rank, timing, false);
        self.say(|_| format!("{} begins as a twin of {} in {pod}", q + 1, p + 1));
        if same_pod {
            self.twins.insert(pod, self.now + long + 5_000);
        }
        let ends = if self.one_in(2) { p } else { q };
        self.at(long, Event::End { p: ends });
    }
}
