//! One candidate and its API server, moved on by chance.

use crate::world::{Rival, Server, at};
use kube_leader_gate::{
    internal::{HANDOVER, InsideOfRecord, Order, WatchNews},
    leadership::Moment,
    lease::{LeaseEvent, LeaseRecord},
};
use proptest::prelude::*;
use serde_json::json;
use std::time::Duration;

const GIVE_UP: Order = Order::GiveUp { failed: 0 };

/// A candidate and its API server, moved by random steps.
struct World {
    rival: Rival,
    server: Server,
    now: Moment,
    /// What the watch may tell again.
    old: Option<LeaseRecord>,
}

impl World {
    fn new(priority: bool) -> Self {
        fastrand::seed(7);
        let rival = Rival::new("me", priority.then_some("high"));
        Self { rival, server: Server { version: 10, ..Server::default() }, now: at(0), old: None }
    }

    /// Another elector writes the lease.
    fn stranger(&mut self, holder: &str) {
        let count = self.server.lease.as_ref().map_or(0, |lease| lease.transitions() + 1);
        let uid =
            self.server.lease.as_ref().map_or(self.server.version.to_string(), |it| it.uid().to_owned());
        let time = self.server.version.to_string();
        self.server.put(json!({ "metadata": { "uid": uid },
            "spec": { "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": count,
                      "acquireTime": time, "renewTime": time } }));
    }

    fn hear(&mut self) {
        let Some(lease) = self.server.lease.clone() else { return };
        self.rival.inbox.push_back(LeaseEvent::Seen(lease));
        while !self.rival.inbox.is_empty() {
            self.rival.hear(self.now);
        }
    }

    /// The candidate does what is next. Returns whether it called.
    fn go_on(&mut self, fate: u8) -> bool {
        self.rival.turn(self.now);
        if self.rival.rewatches {
            self.rival.relists(self.server.lease.clone(), self.now);
        }
        assert!(self.rival.broken.is_none(), "{:?}", self.rival);
        let called = self.rival.flight.is_some();
        if called {
            if fate > 0 {
                self.rival.land(&mut self.server);
            }
            self.rival.answer(&mut self.server, fate <= 1, self.now);
        } else {
            self.now = self.rival.until;
        }
        called
    }

    fn step(&mut self, (what, fate, time): (u8, u8, u16)) {
        match what % 14 {
            0 => self.stranger("other"),
            1 => self.stranger(""),
            2 => drop(self.server.delete()),
            3 => self.hear(),
            4 => self.rival.machine.watched(WatchNews::Up, self.now),
            5 => self.rival.machine.watched(WatchNews::Down(None), self.now),
            6 => self.now = self.now.saturating_add(Duration::from_millis(u64::from(time))),
            7 => {
                let orders = [Order::Contend, Order::Hold, GIVE_UP, Order::StayAway];
                self.rival.order(orders[usize::from(fate) % orders.len()], self.now);
            }
            8 => {
                self.rival.writing |= self.rival.can_write(self.now);
                self.rival.write_ends(false, self.now);
            }
            9 => {
                if let Some(lease) = self.server.lease.clone().filter(|lease| lease.holder() == Some("me")) {
                    let (from, mut object) = (lease.transitions(), lease.into_json());
                    let handover = json!({ HANDOVER: format!("from {from} to {}", from + 1) });
                    object["metadata"]["annotations"] = handover;
                    object["spec"]["holderIdentity"] = "other".into();
                    object["spec"]["leaseTransitions"] = (from + 1).into();
                    self.server.put(object);
                }
            }
            10 => {
                if let Some(old) = self.old.clone() {
                    self.rival.inbox.push_back(LeaseEvent::Seen(old));
                    self.rival.hear(self.now);
                }
            }
            11 => self.old.clone_from(&self.server.lease),
            12 => self.rival.give_way(self.now),
            _ if !self.server.late.is_empty() => {
                let which = usize::from(fate) % self.server.late.len();
                self.server.land_late(which);
            }
            _ => {}
        }
        self.go_on(fate);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// A wait never ends before it begins. The candidate releases nothing too early and nothing that belongs to
    /// another candidate. It acquires nothing without an order. If the API server answers, the candidate leads in the
    /// end, or waits for a holder whose time is running.
    #[test]
    fn it_keeps_the_rules_and_gets_on(
        priority in any::<bool>(),
        steps in prop::collection::vec((any::<u8>(), 0_u8..6, 0_u16..20_000), 1..80),
    ) {
        let mut world = World::new(priority);
        for step in steps {
            world.step(step);
        }
        world.rival.order(Order::Contend, world.now);
        // The end of an order ends its term.
        world.rival.lose(world.now);
        world.rival.relists(world.server.lease.clone(), world.now);
        world.hear();
        let begun = world.now;
        let mut calls = 0;
        // A term that the random steps left without a renewal may still expire, or end for another candidate.
        while !world.rival.can_write(world.now) || world.rival.renewed <= begun {
            calls += u32::from(world.go_on(2));
            prop_assert!(calls < 60, "a flood of calls: {:?}", world.rival);
            prop_assert!(world.now <= begun.saturating_add(Duration::from_mins(2)), "too late: {:?}", world.rival);
        }
        // An answer is never lost.
        let term = world.server.lease.as_ref().map(LeaseRecord::term);
        let begun = world.now;
        calls = 0;
        while world.now < begun.saturating_add(Duration::from_mins(1)) {
            calls += u32::from(world.go_on(2));
            // The watch tells something old.
            if let Some(old) = world.old.take().filter(|old| old.is_older_than(world.server.lease.as_ref().unwrap())) {
                world.rival.inbox.push_back(LeaseEvent::Seen(old));
                world.rival.hear(world.now);
            }
            prop_assert!(world.rival.can_write(world.now), "it leads no more: {:?}", world.rival);
            prop_assert!(calls < 100, "a flood of calls: {calls}");
        }
        prop_assert_eq!(world.server.lease.as_ref().map(LeaseRecord::term), term);
    }
}
