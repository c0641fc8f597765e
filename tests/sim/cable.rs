//! The cable of a machine: which messages the faults of now let through, and when these arrive.

use crate::{
    parcel::Answer,
    plan::{Class, Way, What},
};
use fastrand::Rng;
use std::time::Duration;

#[derive(Debug)]
pub struct Cable {
    up: Rng,
    down: Rng,
    pub rules: Vec<Rule>,
    /// The machine has no power, so its connections are not closed.
    pub mute: bool,
    /// The process does not run, so what arrives is kept.
    pub away: bool,
    pub kept: Vec<(u64, Answer)>,
}

/// What a fault does to the messages of this cable.
#[derive(Debug)]
pub struct Rule {
    pub fault: usize,
    pub what: What,
    /// When the fault ends.
    pub until: u64,
}

impl Cable {
    pub fn new(chance: &mut Rng) -> Self {
        Self { up: chance.fork(), down: chance.fork(), rules: vec![], mute: false, away: false, kept: vec![] }
    }

    /// Whether new requests of this class cannot be sent.
    pub fn refuses(&self, class: Class) -> bool {
        self.rules.iter().any(|rule| matches!(rule.what, What::Refuse(of) if of.covers(class)))
    }

    /// How long a new connection takes to be made. None if there is an open one.
    pub fn connect(&mut self) -> Option<Duration> {
        let chance = &mut self.up;
        let millis = match chance.u8(..16) {
            0 => chance.u64(20..=800),
            1..4 => chance.u64(2..=8),
            _ => return None,
        };
        Some(Duration::from_millis(millis))
    }

    /// How far the API server is behind that this machine watches.
    pub fn lag(&self) -> Option<u64> {
        let lag = |rule: &Rule| if let What::Lag(by) = rule.what { Some(by) } else { None };
        self.rules.iter().filter_map(lag).max()
    }

    /// Whether lease writes of this machine arrive twice.
    pub fn doubles(&self) -> bool {
        self.rules.iter().any(|rule| rule.what == What::Twice)
    }

    /// When a message arrives that is sent now. None if it is lost.
    pub fn arrival(&mut self, way: Way, class: Class, now: u64) -> Option<u64> {
        let chance = match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        };
        let mut at = now + chance.u64(1..=4);
        let mut lost = false;
        for rule in &self.rules {
            match rule.what {
                What::Lose(to, of) if to == way && of.covers(class) => lost = true,
                What::Hold(to, of) if to == way && of.covers(class) => at = at.max(rule.until),
                What::Delay(to, of, from, most) if to == way && of.covers(class) => {
                    at += chance.u64(from..=most);
                }
                What::Lag(by) if way == Way::Down && class == Class::Watches => at += by,
                _ => {}
            }
        }
        (!lost).then_some(at)
    }
}
