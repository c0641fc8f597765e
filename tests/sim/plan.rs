//! A plan: who takes part, and which fault comes when. It is data, so that a failing one can be made smaller and pasted
//! into a test.

use kube_leader_gate::LeaseTiming;
use std::fmt::{self, Write as _};

/// The times of most machines, and of those with a longer lease.
pub const TIMINGS: [&str; 2] = ["15/10/2", "20/15/2"];

/// A whole run. The same plan gives the same run, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Decides everything that the rest of the plan leaves open: delays, pauses and jitter.
    pub seed: u64,
    /// How many leases there are. Every machine contends for each of them.
    pub leases: usize,
    /// What wraps the locks of all elections.
    pub layers: Layers,
    pub machines: Vec<Machine>,
    pub faults: Vec<Fault>,
}

/// The packages whose layers wrap a lock. A plan with a fence has one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers {
    /// The API server refuses the writes of replicas that do not hold the lease.
    pub fence: bool,
    /// A kubelet reports the ends of processes.
    pub early: bool,
}

/// A machine with one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    pub work: Work,
    /// The key of its priority, if it has one. The key `high` precedes the key `low`.
    pub key: Option<&'static str>,
    /// How much faster its clock runs, in parts of a million.
    pub drift: i64,
    /// By how many seconds its wall clock is wrong. No decision may depend on it.
    pub wall: i64,
    /// Whether its elections are those of a [`LeasePool`](kube_leader_gate::lease::LeasePool): two share its clients, and
    /// a single one has its shared watch.
    pub pooled: bool,
    /// The times of its elections. Each candidate trusts the duration that it reads in the lease.
    pub timing: &'static str,
    /// Whether its writes carry a limit for the server.
    pub request_deadline: bool,
    /// The time between two writes of its workload, in milliseconds.
    pub pace: u64,
    /// Whether its workload drops its unanswered writes when it is told to end.
    pub abrupt: bool,
    /// If its gate waits for a cache: how late the watch of this cache is, in milliseconds.
    pub knows: Option<u64>,
}

/// How the workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// `Election::run`: it runs on every replica, and tries to write all the time.
    Gated,
    /// `Election::run_while_leading`.
    WhileLeading,
    /// `Election::start`: tasks beside the election try to write all the time, also while it stops.
    Beside,
}

/// Something that goes wrong, or an order to a replica. Times are milliseconds from the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub at: u64,
    pub length: u64,
    pub target: Target,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The machine that holds the first lease when the fault begins. If there is none, the first machine.
    Holder,
    Machine(usize),
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The process gets no processor. All clocks go on.
    Freeze,
    /// The whole machine sleeps. Timers stand still, and the clock that counts suspend goes on.
    Suspend,
    /// The process gets the processor only once in so many milliseconds.
    Starve(u64),
    /// The process is killed, and the kernel closes its connections. A new process starts at the end of the fault.
    Kill,
    /// The same without a kernel that closes connections.
    PowerLoss,
    /// The process is told to stop. It is killed if it has not stopped at the end of the fault; then a new one starts.
    Stop,
    /// The replica gives leadership up: its work ends, or it steps down. One that steps down stays away for as long as
    /// the fault lasts, and for a second at least.
    GiveUp,
    /// Leading-only work keeps its thread: it computes, and writes in between. The election is on other threads.
    Compute,
    /// All connections break. If true, the server learns of it.
    Reset(bool),
    /// New requests of this class cannot be sent.
    Refuse(Class),
    /// Messages in this direction are lost.
    Lose(Way, Class),
    /// Messages in this direction are kept, and arrive at the end of the fault.
    Hold(Way, Class),
    /// Messages in this direction take this long: at least, and at most.
    Delay(Way, Class, u64, u64),
    /// Lease writes arrive twice, and only the second answer comes back. If the first one was carried out, the second one
    /// met a newer version.
    Twice,
    /// The API server that it watches is so many milliseconds behind: events come late, and a new watch begins in the past.
    Lag(u64),
    /// The API server misbehaves.
    Server(Trouble, Class),
    /// Open watches break.
    BreakWatches(Break),
    /// The API server forgets the history of events.
    Compact,
    /// An outsider takes the first lease.
    Steal,
    /// An outsider deletes the first lease.
    Delete,
}

/// What a client sends, or the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Up,
    Down,
}

/// Which requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Any,
    LeaseWrites,
    LeaseReads,
    Watches,
    Work,
    /// Lists of what a cache has to show. Its watch is one of the watches.
    CacheReads,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It answers with this status.
    Status(u16),
    Forbidden,
    /// It never carries the request out, and never answers.
    Hang,
    /// It carries the request out, and never answers.
    HangAfter,
    /// It drops the connection before the request takes effect.
    Drop,
    /// It carries the request out, and drops the connection.
    DropAfter,
    /// It takes so many milliseconds before it carries the request out.
    Slow(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    End,
    Cut,
    Garbage,
}

impl Layers {
    pub const NONE: Self = Self { fence: false, early: false };
}

impl Plan {
    /// The longest times of any machine.
    pub fn longest(&self) -> LeaseTiming {
        let all = self.machines.iter().map(Machine::timing);
        all.max_by_key(LeaseTiming::lease_duration).unwrap_or_else(LeaseTiming::fast)
    }

    /// Whether a lease may change hands while its holder leads.
    pub fn overlaps(&self) -> bool {
        self.machines.iter().any(|it| it.key.is_some())
            || self.faults.iter().any(|it| matches!(it.what, What::Steal | What::Delete))
    }

    /// Whether the gate of some machine waits for a cache.
    pub fn knows(&self) -> bool {
        self.machines.iter().any(|it| it.knows.is_some())
    }

    /// When the last fault has ended.
    pub fn over(&self) -> u64 {
        self.faults.iter().map(|it| it.at + it.length).max().unwrap_or(0)
    }

    /// The slowest that the API server is, in milliseconds.
    pub fn slowest(&self) -> u64 {
        let slow = self.faults.iter().map(|it| match it.what {
            What::Server(Trouble::Slow(by), _) => by,
            _ => 0,
        });
        slow.max().unwrap_or(0)
    }
}

impl Machine {
    pub fn timing(&self) -> LeaseTiming {
        self.timing.parse().expect("a timing")
    }
}

impl Class {
    pub fn covers(self, other: Self) -> bool {
        self == Self::Any || self == other
    }
}

impl What {
    /// The kind alone.
    pub fn kind(self) -> String {
        let text = format!("{self:?}");
        text.split('(').next().unwrap_or_default().to_owned()
    }

    /// The row of the table.
    pub fn row(self) -> String {
        let class = |class| match class {
            Class::Any => "everything",
            Class::LeaseWrites => "lease writes",
            Class::LeaseReads => "lease reads",
            Class::Watches => "watches",
            Class::Work => "workload writes",
            Class::CacheReads => "lists for caches",
        };
        let way = |way| match way {
            Way::Up => "up",
            Way::Down => "down",
        };
        match self {
            Self::Starve(_) => "starve".into(),
            Self::Reset(_) => "reset".into(),
            Self::Refuse(of) => format!("refuse {}", class(of)),
            Self::Lose(to, of) => format!("lose {}, {}", way(to), class(of)),
            Self::Hold(to, of) => format!("hold {}, {}", way(to), class(of)),
            Self::Delay(to, of, ..) => format!("delay {}, {}", way(to), class(of)),
            Self::Lag(_) => "watched server lags".into(),
            Self::Server(Trouble::Status(code), _) => format!("server answers {code}"),
            Self::Server(Trouble::Slow(_), _) => "server slow".into(),
            Self::Server(trouble, _) => format!("server {trouble:?}").to_lowercase(),
            Self::BreakWatches(how) => format!("watches break, {how:?}").to_lowercase(),
            what => format!("{what:?}").to_lowercase(),
        }
    }
}

/// The plan as a test that can be pasted.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, leases, layers, machines, faults } = self;
        let mut lists = String::new();
        writeln!(lists, "        machines: vec![")?;
        machines.iter().try_for_each(|it| writeln!(lists, "            {it:?},"))?;
        writeln!(lists, "        ],\n        faults: vec![")?;
        faults.iter().try_for_each(|it| writeln!(lists, "            {it:?},"))?;
        writeln!(lists, "        ],")?;
        writeln!(f, "#[rustfmt::skip]\n#[test]\nfn seed_{seed}() {{\n    replay(&Plan {{")?;
        writeln!(f, "        seed: {seed},\n        leases: {leases},\n        layers: {layers:?},")?;
        write!(f, "{lists}    }});\n}}")
    }
}
