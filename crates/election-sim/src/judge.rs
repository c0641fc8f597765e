//! What must be true at each moment, and at the end.

use crate::{
    candidate::{Life, name},
    server::version,
    world::{Event, ROLLOUT, World},
};
use kube_leader_gate::internal::{CLAIM, holder_key};
use serde_json::json;

/// The most calls of one process in a second.
const MOST_CALLS: u64 = 40;
/// A stop takes no longer.
const STOPS_WITHIN: u64 = 9_000;
/// A stopped holder is followed within this time: who has lost a race waits longer by chance, and whose claims
/// were altered waits a period.
const FOLLOWS_WITHIN: u64 = 1_500;

impl World {
    pub fn judge(&mut self) -> Result<(), String> {
        let now = self.now;
        if let Some(broken) = self.broken.take() {
            return Err(format!("at {now} {broken}"));
        }
        let open: Vec<_> = (0..self.all.len()).filter(|&p| self.all[p].is_open(now)).collect();
        for &p in &open {
            self.judge_open(p, &open)?;
        }
        let is_late = |it: &Life, thawed: u64| matches!(it, Life::Stopping { since } if now > thawed.max(*since) + STOPS_WITHIN);
        if let Some(it) = self.all.iter().find(|it| is_late(&it.life, it.frozen_until)) {
            return Err(format!("at {now} {} has not stopped", it.identity));
        }
        let best = self.all.iter().filter(|it| it.life != Life::Gone).map(|it| it.rank).max();
        if !open.is_empty() {
            self.led = now;
        }
        if open.iter().any(|&p| Some(self.all[p].rank) == best) {
            self.best_led = now;
        }
        if self.rollout.of.is_some_and(|it| open.iter().any(|&p| p != it)) {
            self.rollout.handed_over.get_or_insert(now);
        }
        Ok(())
    }

    /// The gate of `p` is open.
    fn judge_open(&self, p: usize, open: &[usize]) -> Result<(), String> {
        let (now, it) = (self.now, &self.all[p]);
        let counts = |pod: u64| self.twins.get(&pod).is_none_or(|until| now > *until);
        // The later of two claims is at fault, unless nothing is promised to it.
        let promised = |other: usize| {
            let (older, newer) = (it.claim.min(other), it.claim.max(other));
            let is_edited = self.edited & 1 << older != 0;
            self.unseen & 1 << older == 0 && !(self.claims[newer].other && is_edited)
        };
        let is_other = |pod: u64| pod != it.pod && counts(pod) && counts(it.pod);
        let mut others = open.iter().map(|&q| &self.all[q]);
        if let Some(other) = others.find(|other| is_other(other.pod) && promised(other.claim)) {
            return Err(format!("at {now} the gates of {} and {} are open", it.identity, other.identity));
        }
        let mut late = self.landing.iter().filter(|write| write.at > now && is_other(write.pod));
        if let Some(write) = late.find(|write| promised(write.claim)) {
            let (own, other, at) = (it.pod, write.pod, write.at);
            return Err(format!("at {now} the gate of {own} is open, and a write of {other} lands at {at}"));
        }
        let mut working = self.all.iter().filter(|other| other.works(now) && is_other(other.pod));
        if let Some(other) = working.find(|other| promised(other.claim)) {
            return Err(format!("at {now} the gate of {} is open, and {} works", it.pod, other.pod));
        }
        if let Some(lease) = &self.server.lease
            && it.knows() == Some(version(lease))
        {
            let process = format!("{:016x} ", it.process);
            let claim = lease.annotation(CLAIM).and_then(|it| it.as_str()).unwrap_or_default();
            if lease.holder() != Some(&name(it.identity)) || !claim.starts_with(&process) {
                return Err(format!(
                    "at {now} {} leads, and knows that the lease is not its own",
                    it.identity
                ));
            }
        }
        Ok(())
    }

    /// Faults have ended long ago.
    pub fn judge_the_calm(&mut self) -> Result<(), String> {
        self.judge()?;
        if self.led < self.now {
            return Err("no candidate leads after 20 quiet seconds".into());
        }
        // A polling candidate can lose each race for a free lease to another elector, which knows nothing of questions.
        let mixed =
            self.all.iter().any(|it| !it.is_ours()) && self.all.iter().any(|it| !it.watches && it.rank > 0);
        // Another elector keeps the key that it finds, so candidates with this key leave it alone.
        let keeps_a_key = self.server.lease.as_ref().is_some_and(|it| {
            let of_ours =
                self.all.iter().any(|own| own.is_ours() && Some(name(own.identity).as_str()) == it.holder());
            !of_ours && holder_key(it).is_some_and(|key| !key.is_empty())
        });
        if self.best_led < self.now && !mixed && !keeps_a_key {
            return Err("no candidate of the highest rank leads".into());
        }
        // A person may empty the lease, which its holder takes back at once.
        let all_watch = self.all.iter().filter(|it| it.is_up()).all(|it| it.watches && !it.leading_only);
        if all_watch && let Some(it) = self.server.lease.clone() {
            let fact = self.server.fact();
            if self.one_in(2) {
                let mut object = it.into_json();
                object["spec"]["holderIdentity"] = json!("");
                self.put(Some(object), crate::server::Fact { claim: None, ..fact });
            }
        }
        Ok(())
    }

    /// Stops the holder, if another one can follow at once.
    pub fn roll_out(&mut self) {
        let up: Vec<_> = (0..self.all.len()).filter(|&p| self.all[p].is_up()).collect();
        let Some(&p) = up.iter().find(|&&p| self.all[p].is_open(self.now)) else { return };
        self.rollout.tried = true;
        let it = &self.all[p];
        let hangs = self.events.iter().any(|(_, event)| {
            matches!(event, Event::Answered { p: q, lost: true, write, .. } if *q == p && it.writes.contains(write))
        });
        let settled = it.settle_at <= it.now(self.now);
        let ours = up.iter().all(|&p| self.all[p].is_ours());
        if !hangs && settled && ours && up.iter().any(|&q| q != p && self.all[q].watches) {
            self.rollout.of = Some(p);
            self.stop(p);
        }
    }

    pub fn judge_the_end(&self) -> Result<(), String> {
        if self.most > MOST_CALLS {
            return Err(format!("{} calls of one process in a second", self.most));
        }
        if self.rollout.of.is_none() {
            return Ok(());
        }
        if !self.rollout.released {
            return Err("a clean stop did not release".into());
        }
        match self.rollout.handed_over {
            Some(at) if at <= ROLLOUT + FOLLOWS_WITHIN => Ok(()),
            at => Err(format!("a rollout handed over at {at:?}")),
        }
    }
}
