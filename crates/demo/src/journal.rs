//! What has happened so far. The view shows it and the verdict judges it.

use crate::{cast::Cast, replica::State, workload::Counts};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// The time between two samples of the replicas.
pub const SAMPLING: Duration = Duration::from_millis(50);

pub struct Journal {
    begun: Instant,
    pages: Mutex<Pages>,
}

#[derive(Clone, Default)]
pub struct Pages {
    /// When each act began.
    pub acts: Vec<Instant>,
    /// When the last one ended.
    pub ended: Option<Instant>,
    /// When the outage began.
    pub gone: Option<Instant>,
    /// When it ended.
    pub resumed: Option<Instant>,
    /// What happened, in words.
    pub notes: Vec<(Duration, String)>,
    pub samples: Vec<Sample>,
}

/// All replicas at one moment.
#[derive(Clone)]
pub struct Sample {
    pub at: Duration,
    pub lanes: Vec<Lane>,
}

#[derive(Clone, Copy)]
pub struct Lane {
    pub state: State,
    pub counts: Counts,
}

impl Journal {
    pub fn new() -> Self {
        Self { begun: Instant::now(), pages: Mutex::default() }
    }

    pub fn act_begins(&self) {
        self.pages().acts.push(Instant::now());
    }

    pub fn ends(&self, cast: &Cast) {
        self.sample(cast);
        self.pages().ended = Some(Instant::now());
    }

    pub fn api_is_gone(&self) {
        self.pages().gone = Some(Instant::now());
    }

    pub fn api_is_back(&self) {
        self.pages().resumed = Some(Instant::now());
    }

    pub fn note(&self, text: impl Into<String>) {
        let at = self.begun.elapsed();
        self.pages().notes.push((at, text.into()));
    }

    pub fn sample(&self, cast: &Cast) {
        let lane =
            |replica: &crate::replica::Replica| Lane { state: replica.state(), counts: replica.counts() };
        let sample = Sample { at: self.begun.elapsed(), lanes: cast.replicas.iter().map(lane).collect() };
        self.pages().samples.push(sample);
    }

    /// The time of the demo at an instant.
    pub fn time(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.begun)
    }

    pub fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    /// How much a lane's counters grew per second, over the last second before `sample`.
    pub fn rates(&self, sample: usize, lane: usize) -> Counts {
        let window = usize::try_from(Duration::from_secs(1).as_millis() / SAMPLING.as_millis()).unwrap_or(1);
        let (Some(now), Some(then)) =
            (self.samples.get(sample), self.samples.get(sample.saturating_sub(window)))
        else {
            return Counts::default();
        };
        let (Some(a), Some(b)) = (then.lanes.get(lane), now.lanes.get(lane)) else {
            return Counts::default();
        };
        b.counts.since(&a.counts).per(now.at.saturating_sub(then.at))
    }
}
