//! What has happened, for the judge.

/// What the replicas have done.
#[derive(Debug)]
pub struct Seen {
    /// When a workload write last took effect, for each lease.
    pub written: Vec<Option<u64>>,
    /// The last term in which leading-only work has run, for each lease: its token, and the machine.
    worked: Vec<(u64, usize)>,
    /// Work of two machines may run at once: a lease is stolen or deleted, or taken by precedence.
    pub overlaps: bool,
    pub openings: Openings,
    /// When candidates have stepped down. One whose process died meanwhile is not here.
    pub away: Vec<Away>,
}

/// Gates of new terms that wait for a cache.
#[derive(Clone, Copy, Debug, Default)]
pub struct Openings {
    /// How many began to wait.
    pub asked: u64,
    /// Of how many of them the cache was behind then.
    pub behind: u64,
    /// How many have opened.
    pub opened: u64,
}

/// A candidate was told to step down, and contended again.
#[derive(Debug)]
pub struct Away {
    pub machine: usize,
    /// When its process began.
    pub born: u64,
    pub lease: usize,
    pub from: u64,
    pub until: u64,
}

impl Seen {
    pub fn new(leases: usize) -> Self {
        Self {
            written: vec![None; leases],
            worked: vec![(0, 0); leases],
            overlaps: false,
            openings: Openings::default(),
            away: vec![],
        }
    }

    /// Leading-only work of this term runs. The work of a term has ended before that of another machine begins (rule
    /// S11). Returns what is wrong.
    pub fn works(&mut self, lease: usize, machine: usize, token: u64) -> Option<String> {
        let (newest, of) = self.worked[lease];
        if token > newest {
            self.worked[lease] = (token, machine);
        }
        let late = token < newest && machine != of && !self.overlaps;
        late.then(|| format!("work: m{machine} works in term {token}, and m{of} works in term {newest}"))
    }
}

impl Openings {
    pub fn asks(&mut self, is_behind: bool) {
        self.asked += 1;
        self.behind += u64::from(is_behind);
    }

    pub fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.behind += other.behind;
        self.opened += other.opened;
    }
}
