//! Writes a plan from a seed.

use crate::{
    net::LATEST,
    plan::{Break, Class, Fault, Layers, Machine, Plan, TIMINGS, Target, Trouble, Way, What, Work},
};
use fastrand::Rng;

/// Faults begin within this time, in milliseconds.
const LAST: u64 = 36_000;
/// The first candidate leads by then.
const FIRST: u64 = 2_500;
/// A candidate that steps down stays away for so long: longer than a lease lasts.
const AWAY: u64 = 18_000;
/// Around a deletion no other fault is played: a candidate that is cut off or begins meanwhile may open its gate too
/// early, as the guarantees say.
const QUIET: (u64, u64) = (6_000, 13_000);

pub fn plan(seed: u64) -> Plan {
    // What came later has a generator of its own, so that a seed keeps the rest of its plan.
    let (mut author, mut more) =
        (Author { rng: Rng::with_seed(seed) }, Author { rng: Rng::with_seed(!seed) });
    let mut wraps = Author { rng: Rng::with_seed(seed ^ LAYERS) };
    let mut caches = Author { rng: Rng::with_seed(seed ^ CACHES) };
    let count = [2, 3, 3, 3, 4][author.rng.usize(..5)];
    let (prioritised, wrong, drifts) = (author.one_in(3), author.one_in(2), author.one_in(2));
    let leases = if author.one_in(6) { 2 } else { 1 };
    let layers = wraps.layers(leases);
    let knows = caches.one_in(3);
    let machines = (0..count).map(|number| Machine {
        work: [Work::Gated, Work::WhileLeading, Work::Beside][author.rng.usize(..3)],
        key: prioritised.then_some(if number == 0 || author.one_in(4) { "high" } else { "low" }),
        drift: if drifts { author.rng.i64(-5_000..=5_000) } else { 0 },
        wall: if wrong { author.rng.i64(-300..=300) } else { 0 },
        pooled: leases > 1 || author.one_in(4),
        timing: TIMINGS[usize::from(more.one_in(8))],
        request_deadline: author.one_in(2),
        pace: author.rng.u64(150..=500),
        abrupt: author.one_in(2),
        knows: if knows { caches.late_cache() } else { None },
    });
    let machines: Vec<_> = machines.collect();
    let mut faults = vec![];
    let mut at = FIRST;
    while at < LAST {
        at += author.rng.u64(0..=5_000);
        author.scene(at, &machines, &mut faults);
        at += author.rng.u64(0..=6_000);
    }
    match more.rng.u8(..6) {
        0 | 1 => more.twice(&machines, &mut faults),
        2 | 3 => more.cut_off(&mut faults),
        4 => more.computes(&mut faults),
        _ => {}
    }
    if knows && caches.one_in(3) {
        caches.unlisted(&machines, &mut faults);
    }
    faults.sort_by_key(|it: &Fault| it.at);
    if author.one_in(5) {
        author.delete(&mut faults);
    }
    Plan { seed, leases, layers, machines, faults }
}

/// Makes another seed of a seed.
const LAYERS: u64 = 0x6c61_7965_7273;
const CACHES: u64 = 0x6361_6368_6573;
/// How late the watch of a cache is, in milliseconds.
const LATE: [u64; 4] = [0, 50, 400, 2_000];

struct Author {
    rng: Rng,
}

impl Author {
    fn one_in(&mut self, many: u32) -> bool {
        self.rng.u32(..many) == 0
    }

    /// Each layer alone, and both.
    fn layers(&mut self, leases: usize) -> Layers {
        if !self.one_in(3) {
            return Layers::NONE;
        }
        let which = self.rng.u8(1..4);
        let has = |bit: u8| which & bit != 0;
        Layers { fence: has(1) && leases == 1, early: has(2) }
    }

    /// One to three faults on the same target, at about the same time.
    fn scene(&mut self, at: u64, machines: &[Machine], faults: &mut Vec<Fault>) {
        let target = match self.rng.u8(..10) {
            0..6 => Target::Holder,
            6..9 => Target::Machine(self.rng.usize(..machines.len())),
            _ => Target::All,
        };
        match self.rng.u8(..12) {
            0 | 1 => return self.siege(at, target, faults),
            2 => return self.late_claim(at, machines, faults),
            _ => {}
        }
        let (most, length) = ([1, 1, 2, 3][self.rng.usize(..4)], self.length());
        for _ in 0..most {
            let what = self.what(target);
            let length = match what {
                // Longer, it is the same as a crash.
                What::Steal | What::Compact | What::BreakWatches(_) | What::GiveUp | What::Reset(_) => 1,
                // Kept messages arrive before the guarantees end.
                What::Hold(Way::Up, Class::Any | Class::Work) if self.rng.bool() => {
                    self.rng.u64(500..=LATEST - 200)
                }
                // Long enough for another candidate to lead.
                What::Freeze | What::Suspend if self.rng.bool() => self.rng.u64(15_500..=20_000),
                _ if self.one_in(3) => self.length(),
                _ => length,
            };
            faults.push(Fault { at: at + self.rng.u64(0..=800), length, target, what });
        }
    }

    /// A holder that can write and cannot renew: its answers are late, then its renewals are lost, and its writes are
    /// slow.
    fn siege(&mut self, at: u64, target: Target, faults: &mut Vec<Fault>) {
        let late = What::Delay(Way::Down, Class::LeaseWrites, 1_000, 1_500);
        let lost = if self.rng.bool() {
            What::Lose(Way::Up, Class::LeaseWrites)
        } else {
            What::Server(Trouble::Hang, Class::LeaseWrites)
        };
        let slow = What::Delay(Way::Up, Class::Work, LATEST / 2, LATEST - 60);
        let first = self.rng.u64(2_200..=5_000);
        faults.push(Fault { at, length: first, target, what: late });
        faults.push(Fault { at: at + first, length: 14_000, target, what: lost });
        faults.push(Fault { at: at + first, length: 14_000, target, what: slow });
    }

    /// A candidate whose claims are slow. The holder stops, so it takes the lease; then it is told to stop, or to step
    /// down. One that steps down is well soon after, so that it can give back what its claim brings.
    fn late_claim(&mut self, at: u64, machines: &[Machine], faults: &mut Vec<Fault>) {
        let way = if self.rng.bool() { Way::Up } else { Way::Down };
        let from = self.rng.u64(300..=2_500);
        let slow = What::Delay(way, Class::LeaseWrites, from, from + 1_500);
        let late = self.rng.usize(..machines.len());
        let stops = at + 1_000 + self.rng.u64(0..=4_000);
        let (slow_for, length, order) = if machines[late].work == Work::Beside {
            (stops - at + 500, AWAY, What::GiveUp)
        } else {
            (9_000, 9_000, What::Stop)
        };
        let late = Target::Machine(late);
        faults.push(Fault { at, length: slow_for, target: late, what: slow });
        faults.push(Fault { at: at + 1_000, length: 7_000, target: Target::Holder, what: What::Stop });
        faults.push(Fault { at: stops, length, target: late, what: order });
    }

    fn length(&mut self) -> u64 {
        match self.rng.u8(..4) {
            0 => self.rng.u64(200..=2_000),
            1 => self.rng.u64(2_000..=6_000),
            _ => self.rng.u64(6_000..=17_000),
        }
    }

    fn what(&mut self, target: Target) -> What {
        let class = match self.rng.u8(..8) {
            0..3 => Class::Any,
            3 | 4 => Class::LeaseWrites,
            5 => Class::LeaseReads,
            6 => Class::Watches,
            _ => Class::Work,
        };
        let way = if self.rng.bool() { Way::Up } else { Way::Down };
        match self.rng.u8(..32) {
            0..3 => What::Freeze,
            3 => What::Suspend,
            4 => What::Starve(self.rng.u64(50..=3_000)),
            5 => What::Kill,
            7..10 if target != Target::All => What::Stop,
            10 | 11 => What::GiveUp,
            12 => What::Reset(self.rng.bool()),
            13 => What::Refuse(class),
            14..17 => What::Lose(way, class),
            17 | 18 => What::Hold(way, class),
            19..23 => {
                let from = self.rng.u64(100..=3_000);
                What::Delay(way, class, from, from + self.rng.u64(0..=1_500))
            }
            23 => What::Delay(Way::Up, Class::Work, 1_000, LATEST - 60),
            24 => What::Lag(self.rng.u64(500..=6_000)),
            25..29 => self.server(class),
            29 => What::BreakWatches([Break::End, Break::Cut, Break::Garbage][self.rng.usize(..3)]),
            30 => What::Compact,
            31 => What::Steal,
            _ => What::PowerLoss,
        }
    }

    fn server(&mut self, class: Class) -> What {
        match self.rng.u8(..8) {
            0 => What::Server(Trouble::Status([429, 500, 503][self.rng.usize(..3)]), class),
            1 => What::Server(Trouble::Forbidden, Class::Watches),
            2 => What::Server(Trouble::Hang, class),
            3 => What::Server(Trouble::HangAfter, class),
            4 => What::Server(Trouble::Drop, class),
            5 => What::Server(Trouble::DropAfter, class),
            _ => What::Server(Trouble::Slow(self.rng.u64(100..=1_800)), class),
        }
    }

    /// A holder whose connections break while writes are on the way. Its next writes are answered, and then it is told to
    /// stop: a broken connection is no answer.
    fn cut_off(&mut self, faults: &mut Vec<Fault>) {
        let (at, target, length) = (self.rng.u64(FIRST..=LAST), Target::Holder, 1_500);
        let breaks = at + length + self.rng.u64(0..=300);
        let stops = breaks + self.rng.u64(200..=1_200);
        let slow = What::Delay(Way::Up, Class::Work, LATEST - 1_000, LATEST - 60);
        faults.push(Fault { at, length, target, what: slow });
        faults.push(Fault { at: breaks, length: 1, target, what: What::Reset(false) });
        faults.push(Fault { at: stops, length: 9_000, target, what: What::Stop });
    }

    /// Work that computes through an outage, which ends its term but not its lease, and goes on after that.
    fn computes(&mut self, faults: &mut Vec<Fault>) {
        let (at, target) = (self.rng.u64(FIRST..=LAST), Target::Holder);
        let outage = self.rng.u64(10_200..=12_000);
        let lost = What::Lose(Way::Up, Class::LeaseWrites);
        faults.push(Fault { at, length: outage + self.rng.u64(1_500..=6_000), target, what: What::Compute });
        faults.push(Fault { at, length: outage, target, what: lost });
    }

    /// Writes of the lease that arrive twice. In most cases the candidate also learns late what became of them, and is
    /// told to stop or to step down meanwhile.
    fn twice(&mut self, machines: &[Machine], faults: &mut Vec<Fault>) {
        let at = self.rng.u64(FIRST..=LAST);
        if self.one_in(4) {
            let (length, target) = (self.length(), Target::Holder);
            return faults.push(Fault { at, length, target, what: What::Twice });
        }
        let machine = self.rng.usize(..machines.len());
        let (target, length) = (Target::Machine(machine), 9_000);
        let slow = What::Delay(Way::Down, Class::LeaseReads, 900, 1_300);
        let ends = at + self.rng.u64(2_500..=8_000);
        let (stays, order) =
            if machines[machine].work == Work::Beside { (AWAY, What::GiveUp) } else { (9_000, What::Stop) };
        faults.push(Fault { at, length, target, what: What::Twice });
        faults.push(Fault { at, length, target, what: slow });
        faults.push(Fault { at, length, target, what: What::Delay(Way::Down, Class::Watches, 2_000, 3_000) });
        // Only this candidate is left to take the lease.
        for other in (0..machines.len()).filter(|it| *it != machine) {
            faults.push(Fault { at: at + 500, length, target: Target::Machine(other), what: What::Stop });
        }
        faults.push(Fault { at: ends, length: stays, target, what: order });
    }

    /// Most machines of a run have a cache.
    fn late_cache(&mut self) -> Option<u64> {
        (!self.one_in(4)).then(|| LATE[self.rng.usize(..LATE.len())])
    }

    /// Caches cannot be compared with what the API server has stored, or only late.
    fn unlisted(&mut self, machines: &[Machine], faults: &mut Vec<Fault>) {
        let (at, length, class) = (self.rng.u64(FIRST..=LAST), self.length(), Class::CacheReads);
        let target = match self.rng.u8(..3) {
            0 => Target::Holder,
            1 => Target::Machine(self.rng.usize(..machines.len())),
            _ => Target::All,
        };
        let from = self.rng.u64(100..=3_000);
        let what = match self.rng.u8(..6) {
            0 => What::Server(Trouble::Forbidden, class),
            1 => What::Server(Trouble::Status(429), class),
            2 => What::Server(Trouble::Hang, class),
            3 => What::Lose(Way::Down, class),
            4 => What::Refuse(class),
            _ => What::Delay(Way::Up, class, from, from + 1_500),
        };
        faults.push(Fault { at, length, target, what });
    }

    /// A deletion of the lease, in the place of all faults around it.
    fn delete(&mut self, faults: &mut Vec<Fault>) {
        let at = self.rng.u64(QUIET.0 + FIRST..=LAST);
        let (from, to) = (at - QUIET.0, at + QUIET.1);
        faults.retain(|it| it.at + it.length < from || it.at > to);
        faults.push(Fault { at, length: 1, target: Target::All, what: What::Delete });
        faults.sort_by_key(|it| it.at);
    }
}
