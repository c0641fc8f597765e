//! Gives libFuzzer the seeds and the words of a target. The bodies are in `crates/proof`.

pub use proof::fuzz::{LEASES, MARKS, REQUESTS, TIMING, Target, WATCHES};
use std::{fmt::Write as _, fs, io, path::Path};

/// Writes the seeds into the corpus of the target, and the words into its dictionary, before libFuzzer reads them.
pub fn sow(target: &Target) {
    try_to_sow(target).unwrap_or_else(|error| panic!("the seeds of {} cannot be written: {error}", target.name));
}

fn try_to_sow(target: &Target) -> io::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = here.join("corpus").join(target.name);
    fs::create_dir_all(&corpus)?;
    for (number, seed) in target.seeds.iter().enumerate() {
        fs::write(corpus.join(format!("seed-{number}")), seed)?;
    }
    let mut words = String::new();
    for word in target.words {
        let escaped: String = word.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
        let _ = writeln!(words, "\"{escaped}\"");
    }
    fs::write(here.join("corpus").join(format!("{}.dict", target.name)), words)
}
