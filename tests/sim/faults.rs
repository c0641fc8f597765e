//! Plays the faults of a plan.

use crate::{
    gateway::identity,
    plan::{Break, Class, Fault, Target, Trouble, What, Work},
    world::{Host, Struck, World, path},
};
use kube_leader_gate::testing::{self, WatchBreak};
use serde_json::{Value, json};
use std::time::Duration;

/// What an outsider claims, in seconds.
const STOLEN: u64 = 15;

impl World<'_> {
    pub fn begin(&mut self, id: usize) {
        let Fault { at, length, target, what } = self.plan.faults[id];
        let everyone = || (0..self.hosts.len()).collect();
        let machines: Vec<usize> = match target {
            Target::Holder => vec![self.holder(0).unwrap_or(0)],
            Target::Machine(machine) => vec![machine],
            Target::All => everyone(),
        };
        self.note(&format!("begins: {what:?} for {length} ms at {machines:?}"));
        let hits: Vec<bool> =
            machines.iter().map(|host| self.hit_one(*host, id, at + length, what)).collect();
        let hit = hits.contains(&true) | self.hit_the_lease(what);
        *self.counts.entry(what.row()).or_default() += u64::from(hit);
        if hit {
            self.kinds.insert(what.kind());
        }
        let until = at + length.max(1);
        self.struck.extend(machines.iter().zip(hits).filter(|it| it.1).map(|it| Struck {
            machine: *it.0,
            at,
            until,
            what,
        }));
        self.hit.insert(id, machines);
    }

    pub fn end(&mut self, id: usize) {
        let what = self.plan.faults[id].what;
        self.note(&format!("ends: {what:?}"));
        self.net.get().remove_rules(id);
        self.guards.remove(&id);
        for host in self.hit.remove(&id).unwrap_or_default() {
            match what {
                What::Freeze => self.hosts[host].frozen -= 1,
                What::Suspend => self.hosts[host].asleep -= 1,
                What::Starve(_) => drop(self.hosts[host].starved.remove(&id)),
                What::Compute => {
                    if let Some(replica) = &self.hosts[host].replica {
                        replica.computing.set(false);
                    }
                }
                What::Kill | What::PowerLoss => self.boot(host),
                What::Stop => {
                    if self.hosts[host].told.is_some() {
                        self.kill(host, true);
                    }
                    self.boot(host);
                }
                _ => {}
            }
        }
    }

    /// Returns whether the fault has hit something.
    fn hit_one(&mut self, host: usize, id: usize, until: u64, what: What) -> bool {
        let is_up = self.hosts[host].replica.is_some();
        match what {
            What::Freeze => self.hosts[host].frozen += 1,
            What::Suspend => self.hosts[host].asleep += 1,
            What::Starve(every) => drop(self.hosts[host].starved.insert(id, every)),
            What::Kill => self.kill(host, true),
            What::PowerLoss => self.kill(host, false),
            What::Stop => self.stop(host),
            What::GiveUp => {
                if let Some(replica) = &self.hosts[host].replica {
                    replica.give_up.order(until - self.now());
                }
            }
            What::Compute => {
                let Host { machine, replica, .. } = &self.hosts[host];
                let works = replica.as_ref().filter(|_| machine.work == Work::WhileLeading);
                works.inspect(|replica| replica.computing.set(true));
                return works.is_some();
            }
            What::Reset(heard) => self.net.get().reset(host, heard),
            What::Twice | What::Refuse(_) | What::Lose(..) | What::Hold(..) | What::Delay(..) => {
                self.net.get().add_rule(host, id, what, until);
            }
            What::Lag(_) => {
                self.net.get().add_rule(host, id, what, until);
                // Its clients begin anew at the other API server.
                self.break_watches(host, WatchBreak::End);
            }
            What::Server(trouble, class) => {
                let faults = troubles(trouble, class)
                    .into_iter()
                    .map(|it| self.server.inject(it.user(identity(host))));
                let faults: Vec<_> = faults.collect();
                self.guards.entry(id).or_default().extend(faults);
            }
            What::BreakWatches(how) => {
                let how = match how {
                    Break::End => WatchBreak::End,
                    Break::Cut => WatchBreak::Cut,
                    Break::Garbage => WatchBreak::Garbage,
                };
                return self.break_watches(host, how) > 0;
            }
            What::Compact | What::Steal | What::Delete => return false,
        }
        is_up
    }

    /// Breaks the open watches of a machine, and returns how many these are. A late watch breaks so much later, on the clock
    /// of the API server.
    fn break_watches(&self, host: usize, how: WatchBreak) -> usize {
        let _on_its_clock = self.gateway.runtime().enter();
        self.server.break_watches(|user| user == identity(host), how)
    }

    fn hit_the_lease(&mut self, what: What) -> bool {
        let (server, lease) = (self.server.clone(), path(0));
        match what {
            What::Compact => {
                server.compact();
                true
            }
            What::Steal => {
                let stolen =
                    self.gateway.run(&self.net, async { server.edit("outsider", &lease, steal).is_ok() });
                if let Some(object) = server.object(&lease) {
                    let now = self.now();
                    self.net.get().past.note(0, now, object);
                }
                stolen
            }
            What::Delete => self.gateway.run(&self.net, async { server.delete("outsider", &lease).is_ok() }),
            _ => false,
        }
    }
}

fn steal(lease: &mut Value) {
    let spec = &mut lease["spec"];
    let count = spec["leaseTransitions"].as_u64().unwrap_or(0);
    let renewed = spec["renewTime"].take();
    *spec = json!({ "holderIdentity": "outsider", "leaseDurationSeconds": STOLEN, "leaseTransitions": count + 1,
                    "acquireTime": renewed, "renewTime": renewed });
}

fn troubles(trouble: Trouble, class: Class) -> Vec<testing::Fault> {
    let fault = || match trouble {
        Trouble::Status(code) => testing::Fault::status(code),
        Trouble::Forbidden => testing::Fault::forbidden(),
        Trouble::Hang => testing::Fault::hang_before(),
        Trouble::HangAfter => testing::Fault::hang_after(),
        Trouble::Drop => testing::Fault::drop_before(),
        Trouble::DropAfter => testing::Fault::drop_after(),
        Trouble::Slow(by) => testing::Fault::delay_before(Duration::from_millis(by)),
    };
    match class {
        Class::Any => vec![fault()],
        Class::LeaseWrites => vec![fault().writes().resource("leases")],
        Class::LeaseReads => vec![fault().verb("get").resource("leases")],
        Class::Watches => vec![fault().verb("watch")],
        Class::Work => vec![fault().writes().resource("configmaps")],
        Class::CacheReads => vec![fault().verb("list").resource("configmaps")],
    }
}
