//! How many connections the process has room for.

/// Enough for any application beside it.
const MOST: usize = 4096;

/// For the election, the status port, files, and connections that are being closed.
#[cfg(unix)]
const RESERVED: u64 = 128;

/// How many connections may be open at once. Each may need a second one, to the API server; the election must always
/// have its own.
#[cfg(unix)]
pub fn connections() -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    // The soft limit is there for programs that use select(2).
    let soft = limit.current;
    limit.current = limit.maximum;
    let allowed = if setrlimit(Resource::Nofile, limit).is_ok() { limit.maximum } else { soft };
    let room = allowed.unwrap_or(u64::MAX).saturating_sub(RESERVED) / 2;
    usize::try_from(room).unwrap_or(MOST).clamp(1, MOST)
}

#[cfg(not(unix))]
pub fn connections() -> usize {
    MOST
}
