//! What a process uses, as the kernel of Linux tells, and whether that grows.

use std::{fmt::Display, fs, io};

/// The resident memory, in KiB. `process` is a process id, or `self`.
pub fn memory(process: impl Display) -> io::Result<u64> {
    status(process, "VmRSS:")
}

pub fn threads(process: impl Display) -> io::Result<u64> {
    status(process, "Threads:")
}

pub fn descriptors(process: impl Display) -> io::Result<u64> {
    Ok(fs::read_dir(format!("/proc/{process}/fd"))?.count() as u64)
}

fn status(process: impl Display, name: &str) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|it| it.strip_prefix(name));
    line.and_then(|it| it.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| io::Error::other(format!("/proc/{process}/status has no {name}")))
}

/// The second quarter and the last one of some samples. The first quarter is the start: buffers and connections that every
/// process needs once.
pub fn quarters<T>(samples: &[T]) -> (&[T], &[T]) {
    let quarter = samples.len() / 4;
    (&samples[quarter..2 * quarter], &samples[samples.len() - quarter..])
}

/// Says what has grown, if the last quarter uses more than the second one and `spare`.
pub fn growth(what: &str, before: u64, after: u64, spare: u64) -> Option<String> {
    (after > before + spare)
        .then(|| format!("{what}: {before} at most in the second quarter, {after} in the last"))
}
