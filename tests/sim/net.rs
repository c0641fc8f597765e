//! The network: every message has an instant at which it arrives, unless it is lost. Messages of one connection keep their
//! order.

use crate::{
    cable::{Cable, Rule},
    clock::MachineClock,
    parcel::{Answer, Content, Parcel},
    past::Past,
    plan::{Class, Way, What},
    seen::Seen,
};
use bytes::Bytes;
use fastrand::Rng;
use http::Request;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::mpsc, task::AbortHandle};

/// A workload write takes effect within this time after it was sent, or never: at 15/10/2 s, the lease duration less the
/// renew deadline is 5 s, and the rest is for clocks that drift and for the steps of the simulation.
pub const LATEST: u64 = 4_650;

#[derive(Clone, Debug)]
pub struct Shared(Arc<Mutex<Net>>);

#[derive(Debug)]
pub struct Net {
    /// Milliseconds since the run began: when this step began, and when it ends.
    pub now: u64,
    pub next: u64,
    /// The clock of the machine that runs now, and its time at the beginning of this step.
    running: Option<(Arc<MachineClock>, Duration)>,
    parcels: BTreeMap<(u64, u64), Parcel>,
    /// How many parcels and connections there have been.
    count: u64,
    connections: BTreeMap<u64, Connection>,
    pub cables: Vec<Cable>,
    /// The longest time on the way of a workload write.
    longest: u64,
    /// What has happened, as text.
    pub log: Vec<String>,
    /// Found while the run goes on.
    pub violations: BTreeSet<String>,
    /// Log messages of the crate, by machine.
    pub messages: Vec<u64>,
    /// What an API server that lags still shows.
    pub past: Past,
    /// What the judge asks about.
    pub seen: Seen,
    /// How late the fence hears of the lease, if there is a fence, in milliseconds.
    pub fence: Option<u64>,
}

#[derive(Debug)]
struct Connection {
    machine: usize,
    class: Class,
    client: mpsc::UnboundedSender<Answer>,
    server: Option<AbortHandle>,
    up: Direction,
    down: Direction,
}

#[derive(Debug, Default)]
struct Direction {
    /// When the last message arrives.
    last: u64,
    /// A message was lost, so nothing that follows it arrives.
    dead: bool,
}

impl Shared {
    pub fn new(seed: u64, machines: usize, leases: usize, slowest: u64) -> Self {
        let mut chance = Rng::with_seed(seed);
        let cables = (0..machines).map(|_| Cable::new(&mut chance));
        Self(Arc::new(Mutex::new(Net {
            now: 0,
            next: 0,
            running: None,
            parcels: BTreeMap::new(),
            count: 0,
            connections: BTreeMap::new(),
            cables: cables.collect(),
            longest: LATEST - slowest,
            log: vec![],
            violations: BTreeSet::new(),
            messages: vec![0; machines],
            past: Past::new(leases),
            seen: Seen::new(leases),
            fence: None,
        })))
    }

    pub fn get(&self) -> MutexGuard<'_, Net> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Net {
    /// How many connections the clients hold open. The server never learns of a hang-up that is lost.
    pub fn open(&self) -> usize {
        self.connections.values().filter(|it| !it.client.is_closed()).count()
    }

    /// The machine with this clock runs now, or none.
    pub fn run(&mut self, clock: Option<Arc<MachineClock>>) {
        self.running = clock.map(|clock| {
            let began = clock.since();
            (clock, began)
        });
    }

    /// The present millisecond, for the machine that runs.
    pub fn time(&self) -> u64 {
        let passed = self
            .running
            .as_ref()
            .map_or(Duration::ZERO, |(clock, began)| clock.since().saturating_sub(*began));
        (self.now + u64::try_from(passed.as_millis()).unwrap_or(0)).min(self.next)
    }

    pub fn note(&mut self, text: &str) {
        let line = format!("{:>6} {text}", self.time());
        self.log.push(line);
    }

    pub fn violate(&mut self, what: String) {
        self.note(&format!("VIOLATION {what}"));
        self.violations.insert(what);
    }

    // --- faults ---

    pub fn add_rule(&mut self, machine: usize, id: usize, what: What, until: u64) {
        self.cables[machine].rules.push(Rule { fault: id, what, until });
    }

    pub fn remove_rules(&mut self, id: usize) {
        self.cables.iter_mut().for_each(|cable| cable.rules.retain(|rule| rule.fault != id));
    }

    /// Breaks all connections of a machine.
    pub fn reset(&mut self, machine: usize, heard: bool) {
        let ids: Vec<_> =
            self.connections.iter().filter(|(_, it)| it.machine == machine).map(|it| *it.0).collect();
        for id in ids {
            let connection = self.connections.get_mut(&id).expect("it is there");
            // The client may be gone.
            let _ = connection.client.send(Answer::Reset);
            connection.down.dead = true;
            if heard {
                self.hang_up(id);
            }
        }
    }

    // --- the client's end ---

    /// Opens a connection and sends a request. None if that is refused.
    pub fn send(
        &mut self,
        machine: usize,
        class: Class,
        request: Request<Bytes>,
        client: mpsc::UnboundedSender<Answer>,
    ) -> Option<u64> {
        if self.cables[machine].refuses(class) {
            return None;
        }
        self.count += 1;
        let id = self.count;
        let (up, down) = (Direction::default(), Direction::default());
        self.connections.insert(id, Connection { machine, class, client, server: None, up, down });
        self.post(Way::Up, id, Content::Request(Box::new(request)));
        Some(id)
    }

    /// The client closes the connection.
    pub fn hang_up(&mut self, id: u64) {
        let Some(connection) = self.connections.get(&id) else { return };
        if !self.cables[connection.machine].mute {
            self.post(Way::Up, id, Content::HangUp);
        }
    }

    /// The clients of a machine have closed these connections without a word.
    pub fn hang_up_all(&mut self, machine: usize) {
        let closed = |it: &Connection| it.machine == machine && it.client.is_closed();
        let ids: Vec<_> = self.connections.iter().filter(|it| closed(it.1)).map(|it| *it.0).collect();
        for id in ids {
            self.hang_up(id);
        }
    }

    // --- the server's end ---

    pub fn answer(&mut self, id: u64, answer: Answer) {
        self.post(Way::Down, id, Content::Answer(answer));
    }

    /// The task that serves this connection. None ends it.
    pub fn serves(&mut self, id: u64, task: Option<AbortHandle>) {
        match (self.connections.get_mut(&id), task) {
            (Some(connection), Some(task)) => connection.server = Some(task),
            (_, None) => {
                if let Some(task) = self.connections.remove(&id).and_then(|it| it.server) {
                    task.abort();
                }
            }
            (None, Some(task)) => task.abort(),
        }
    }

    /// Leading-only work of this term runs.
    pub fn works(&mut self, lease: usize, machine: usize, token: u64) {
        if let Some(violation) = self.seen.works(lease, machine, token) {
            self.violate(violation);
        }
    }

    /// A workload write has taken effect.
    pub fn wrote(&mut self, lease: usize) {
        self.seen.written[lease] = Some(self.time());
    }

    pub fn machine(&self, id: u64) -> Option<(usize, Class)> {
        self.connections.get(&id).map(|it| (it.machine, it.class))
    }

    /// Gives a client what has arrived for it.
    pub fn tell(&mut self, id: u64, answer: Answer) {
        let Some(connection) = self.connections.get(&id).filter(|it| !it.down.dead) else { return };
        let cable = &mut self.cables[connection.machine];
        if cable.away {
            return cable.kept.push((id, answer));
        }
        let over = matches!(answer, Answer::Head(_, Some(_)) | Answer::End | Answer::Reset);
        // The client may be gone.
        let _ = connection.client.send(answer);
        if over {
            self.connections.remove(&id);
        }
    }

    /// Keeps what arrives for a machine.
    pub fn keep(&mut self, machine: usize) {
        self.cables[machine].away = true;
    }

    /// Gives the clients of a machine what was kept for them.
    pub fn take_in(&mut self, machine: usize) {
        let cable = &mut self.cables[machine];
        cable.away = false;
        for (id, answer) in std::mem::take(&mut cable.kept) {
            self.tell(id, answer);
        }
    }

    // --- on the way ---

    /// The next message that has arrived.
    pub fn arrived(&mut self) -> Option<Parcel> {
        let first = self.parcels.first_entry()?;
        (first.key().0 <= self.now).then(|| first.remove())
    }

    /// When the next message arrives.
    pub fn next_arrival(&self) -> Option<u64> {
        self.parcels.keys().next().map(|key| key.0)
    }

    fn post(&mut self, way: Way, id: u64, content: Content) {
        let sent = self.time();
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let class = connection.class;
        let direction = match way {
            Way::Up => &mut connection.up,
            Way::Down => &mut connection.down,
        };
        let arrival = self.cables[connection.machine].arrival(way, class, sent);
        // The guarantees say nothing about a write that is later than this.
        let latest = if class == Class::Work && matches!(content, Content::Request(_)) {
            sent + self.longest
        } else {
            u64::MAX
        };
        let Some(at) = arrival.filter(|at| *at <= latest && !direction.dead) else {
            direction.dead = true;
            return;
        };
        direction.last = at.max(direction.last).max(self.next);
        self.count += 1;
        self.parcels.insert((direction.last, self.count), Parcel { connection: id, content });
    }
}
