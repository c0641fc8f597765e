//! What people do to a lease.

use crate::{
    candidate::name,
    server::{Fact, bit, unannotated, version},
    world::{Claimed, Event, World},
};
use serde_json::{Value, json};

impl World {
    pub fn edit(&mut self) {
        let Some(it) = self.server.lease.clone() else { return };
        if self.now < self.lag_until + 8_000 {
            return; // versions that go back mean one thing at a time
        }
        let kind = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 10, 10, 11][self.rng.usize(..15)];
        let mut fact = self.server.fact();
        let of_another = fact.claim.is_some_and(|it| self.claims[it].other);
        self.say(|_| format!("edit {kind} of {}", crate::calls::short(&it)));
        let of_holder = self.claims_of(it.holder());
        self.edited |= of_holder | fact.told; // what it told is lost, too
        let copy = self.server.past[self.rng.usize(..self.server.past.len())].clone();
        let mut of_copy = copy.as_ref().map_or(Fact::default(), |it| self.server.facts[&version(it)]);
        self.edited_at = self.now;
        // Who was cut off from the renewals since cannot tell that there were any, nor that they counted on more time.
        if matches!(kind, 4 | 5 | 10) || kind == 3 && of_another {
            let of_holder =
                if kind == 3 { of_holder } else { self.claims_of(copy.as_ref().and_then(|it| it.holder())) };
            let version = self.server.version;
            for it in &mut self.all {
                if kind == 5 || it.knows() != Some(version) {
                    it.seen &= !of_holder;
                }
            }
            // Nor can who waits behind its claim, and reads nothing any more, that a backup has made another elector go on.
            if kind == 5 {
                self.unseen |= of_holder;
            }
            of_copy = Fact { claim: None, told: of_copy.told & !of_holder };
            if kind == 3 {
                fact = Fact { claim: None, told: fact.told & !of_holder };
            }
        }
        let nobody = Fact { claim: None, ..fact };
        let mut object = it.into_json();
        match kind {
            1 => self.change(object, nobody, |spec| spec["holderIdentity"] = json!("")),
            2 => self.change(object, nobody, |spec| spec["holderIdentity"] = json!("c99")),
            9 => {
                let named = name(self.all[self.rng.usize(..self.all.len())].identity);
                self.change(object, nobody, |spec| spec["holderIdentity"] = json!(named));
            }
            10 => {
                if let Some(copy) = copy {
                    self.put(None, fact);
                    let mut copy = copy.into_json();
                    copy["metadata"]["uid"] = self.server.next_uid().into();
                    self.put(Some(copy), of_copy);
                }
            }
            11 => self.change(object, nobody, |spec| *spec = json!({})),
            3 => {
                let seconds = if !of_another && self.one_in(2) { 6 } else { 2 };
                self.change(object, fact, |spec| spec["leaseDurationSeconds"] = json!(seconds));
            }
            4 => {
                if let Some(copy) = copy {
                    let mut copy = copy.into_json();
                    copy["metadata"]["uid"] = object["metadata"]["uid"].take();
                    self.put(Some(copy), of_copy);
                }
            }
            5 => {
                // A backup of everything. The watches end, and show nothing of it.
                self.server.eras += 1;
                let version = copy.as_ref().map_or(100, version);
                self.server.version = version - version % 100 + self.server.eras;
                if let Some(it) = &copy {
                    self.server.facts.insert(crate::server::version(it), of_copy);
                }
                self.server.lease = copy;
                self.events.retain(|(_, it)| !matches!(it, Event::News { .. }));
            }
            _ => {
                self.put(None, fact); // a watch shows the last state with the deletion
                object["metadata"]["uid"] = self.server.next_uid().into();
                match kind {
                    6 => drop(self.put(Some(object), fact)), // made anew from a copy
                    7 => {
                        unannotated(&mut object);
                        object["spec"] = json!({
                            "holderIdentity": "c98", "leaseDurationSeconds": 5, "leaseTransitions": 0,
                            "acquireTime": "2001-01-01T00:00:00.000000Z", "renewTime": "2001-01-01T00:00:00.000000Z",
                        });
                        self.put(Some(object), Fact::default());
                    }
                    _ => {}
                }
            }
        }
    }

    fn change(&mut self, mut object: Value, fact: Fact, change: impl FnOnce(&mut Value)) {
        change(&mut object["spec"]);
        self.put(Some(object), fact);
    }

    fn claims_of(&self, holder: Option<&str>) -> u128 {
        let of = |(_, it): &(usize, &Claimed)| Some(name(it.identity).as_str()) == holder;
        self.claims.iter().enumerate().filter(of).fold(0, |all, (id, _)| all | bit(Some(id)))
    }
}
