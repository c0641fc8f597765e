//! What the API server has seen, and what it has cost.

use crate::Outcome;
use jiff::Timestamp;
use std::{fs, time::Duration};
use test_support::apiserver::{AuditEvent, Cluster};

/// The lease requests of a stretch of time.
#[derive(Clone, Default)]
pub(crate) struct Count {
    pub(crate) reads: usize,
    pub(crate) writes: usize,
    pub(crate) refused: usize,
    /// When the last write that emptied the holder was answered.
    pub(crate) released: Option<Timestamp>,
    /// The last `renewTime`, and when the write that brought it was answered.
    pub(crate) renewed: Option<(String, Timestamp)>,
}

impl Count {
    pub(crate) fn of(events: &[AuditEvent]) -> Self {
        let mut count = Self::default();
        for event in events.iter().filter(|it| it.object_ref.resource == "leases") {
            match (&*event.verb, &*event.stage) {
                ("get", "ResponseComplete") => count.reads += 1,
                ("create" | "update", "ResponseComplete") => {
                    count.writes += 1;
                    if event.response_status.code >= 400 {
                        count.refused += 1;
                        continue;
                    }
                    let holder = event.response_object["spec"]["holderIdentity"].as_str();
                    if holder.is_none_or(str::is_empty) {
                        count.released = Some(event.stage_timestamp);
                    } else {
                        let time = event.response_object["spec"]["renewTime"].as_str().unwrap_or_default();
                        if count.renewed.as_ref().is_none_or(|(last, _)| last != time) {
                            count.renewed = Some((time.to_owned(), event.stage_timestamp));
                        }
                    }
                }
                _ => {}
            }
        }
        count
    }

    pub(crate) fn plus(self, other: &Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            refused: self.refused + other.refused,
            ..self
        }
    }
}

/// The time on the CPU of the kube-apiserver that listens on this port. Linux alone.
pub(crate) fn cpu_time(cluster: &Cluster) -> Outcome<Duration> {
    let flag = format!("--secure-port={}", cluster.addr().port());
    for entry in fs::read_dir("/proc")?.flatten() {
        let Ok(command) = fs::read(entry.path().join("cmdline")) else { continue };
        let mut words = command.split(|byte| *byte == 0);
        let program = words.next().is_some_and(|it| it.ends_with(b"kube-apiserver"));
        if program && words.any(|word| word == flag.as_bytes()) {
            return of_process(&entry.path().join("stat"));
        }
    }
    Err("no process of the kube-apiserver".into())
}

/// The time on the CPU of this process.
pub(crate) fn own_cpu_time() -> Outcome<Duration> {
    of_process("/proc/self/stat".as_ref())
}

fn of_process(stat: &std::path::Path) -> Outcome<Duration> {
    let stat = fs::read_to_string(stat)?;
    // The name of the program, in brackets, may have spaces.
    let (_, after) = stat.rsplit_once(')').ok_or("no name in stat")?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks = |place: usize| {
        fields.get(place).ok_or("too few fields in stat")?.parse::<u64>().map_err(|_| "no number")
    };
    // User and system time, in hundredths of a second on each architecture that Linux has now.
    Ok(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
}
