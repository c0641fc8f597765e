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
    /// When candidates have stepped down. One whose process died meanwhile is not here.
    pub away: Vec<Away>,
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
        Self { written: vec![None; leases], worked: vec![(0, 0); leases], overlaps: false, away: vec![] }
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
