//! What must hold for any bytes that come from outside.
//!
//! Each [`Target`] has a body. It takes bytes, and panics if something does not hold. `crates/fuzz` calls the bodies from
//! libFuzzer (`make -C crates/proof fuzz`), and the tests below call them with changed seeds.

mod leases;
mod marks;
mod reading;
mod requests;
#[cfg(test)]
mod tests;
mod timing;
mod watches;

use std::fmt;

/// A body, and bytes to begin with.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name, as in `crates/fuzz/fuzz_targets`.
    pub name: &'static str,
    /// Panics if the bytes show a defect.
    pub body: fn(&[u8]),
    /// Inputs that reach far.
    pub seeds: &'static [&'static str],
    /// Pieces of inputs that random changes hardly ever make.
    pub words: &'static [&'static str],
}

/// Requests of callers: the method, the target, and values of `Connection` headers.
pub const REQUESTS: Target =
    Target { name: "requests", body: requests::body, seeds: requests::SEEDS, words: requests::WORDS };

/// The API server's answer to a read of the lease.
pub const LEASES: Target =
    Target { name: "leases", body: leases::body, seeds: leases::SEEDS, words: leases::WORDS };

/// The stream of a watch, in pieces.
pub const WATCHES: Target =
    Target { name: "watches", body: watches::body, seeds: watches::SEEDS, words: watches::WORDS };

/// The text of a timing, or numbers of which one is made.
pub const TIMING: Target =
    Target { name: "timing", body: timing::body, seeds: timing::SEEDS, words: timing::WORDS };

/// The annotations with which candidates speak to one another: the claim, its waits, the question and the key.
pub const MARKS: Target =
    Target { name: "marks", body: marks::body, seeds: marks::SEEDS, words: marks::WORDS };

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("name", &self.name).finish_non_exhaustive()
    }
}
