//! What a process uses: memory, descriptors, threads, tasks, and room for its log.

use crate::Failure;
use rustix::process::Pid;
use test_support::usage;

/// What one candidate uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Resident, in KiB.
    pub memory: u64,
    pub descriptors: u64,
    pub threads: u64,
    pub tasks: u64,
    /// Bytes of its log since its start.
    pub logged: u64,
}

/// One sample of all candidates.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Seconds since the beginning.
    pub at: u64,
    /// How many faults were played by then.
    pub faults: u64,
    pub usages: Vec<Usage>,
}

impl Usage {
    /// What the kernel says about a process, and what the process said about itself.
    pub fn of(pid: Pid, tasks: u64, logged: u64) -> Result<Self, Failure> {
        let pid = pid.as_raw_nonzero();
        let (memory, threads) = (usage::memory(pid)?, usage::threads(pid)?);
        Ok(Self { memory, descriptors: usage::descriptors(pid)?, threads, tasks, logged })
    }
}

/// What has grown from the second quarter of the samples to the last one.
pub fn grown(samples: &[Sample]) -> Vec<String> {
    let (early, late) = usage::quarters(samples);
    let most = |part: &[Sample], of: fn(&Usage) -> u64| {
        part.iter().flat_map(|it| &it.usages).map(of).max().unwrap_or_default()
    };
    let judge = |what: &str, of: fn(&Usage) -> u64, spare: u64| {
        usage::growth(what, most(early, of), most(late, of), spare)
    };
    let (before, after) = (logged(early), logged(late));
    let judged = [
        judge("KiB of memory", |it| it.memory, most(early, |it| it.memory) / 10),
        // A fault more or less at the instant of a sample: a few connections with a task each.
        judge("descriptors", |it| it.descriptors, 4),
        judge("threads", |it| it.threads, 1),
        judge("tasks", |it| it.tasks, 4),
        usage::growth("bytes of log for each fault", before, after, before / 2 + 1_000),
    ];
    judged.into_iter().flatten().collect()
}

/// Bytes of log of all candidates, for each fault.
pub fn logged(part: &[Sample]) -> u64 {
    let (Some(first), Some(last)) = (part.first(), part.last()) else { return 0 };
    let sum = |it: &Sample| it.usages.iter().map(|it| it.logged).sum::<u64>();
    (sum(last) - sum(first)) / (last.faults - first.faults).max(1)
}

pub fn more_of_anything_is_found() {
    let usage = Usage { memory: 20_000, descriptors: 20, threads: 4, tasks: 9, logged: 0 };
    let flat = |at: u64| {
        let usage = Usage { logged: at * 100, ..usage };
        Sample { at, faults: at, usages: vec![usage; 3] }
    };
    let samples: Vec<_> = (0..40).map(flat).collect();
    assert_eq!(grown(&samples), Vec::<String>::new());
    let grows = |grow: fn(&mut Usage, u64)| {
        let mut samples = samples.clone();
        for sample in &mut samples {
            grow(&mut sample.usages[1], sample.at);
        }
        grown(&samples).len()
    };
    assert_eq!(grows(|usage, at| usage.memory += at * 200), 1);
    assert_eq!(grows(|usage, at| usage.descriptors += at / 4), 1);
    assert_eq!(grows(|usage, at| usage.threads += at / 10), 1);
    assert_eq!(grows(|usage, at| usage.tasks += at / 4), 1);
    assert_eq!(grows(|usage, at| usage.logged += at * at * at), 1);
}
