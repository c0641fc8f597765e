//! Everything that happened, one JSON object in a line.

use serde_json::Value;
use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::time::Instant;

#[derive(Debug)]
pub struct Journal {
    pub path: PathBuf,
    file: Mutex<File>,
}

impl Journal {
    pub fn create(path: Option<&Path>, name: &str) -> io::Result<Self> {
        let path = if let Some(path) = path {
            path.to_owned()
        } else {
            // Beside the only folder below the target folder that cargo names to tests.
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("chaos");
            fs::create_dir_all(&folder)?;
            folder.join(format!("{name}-{}.jsonl", std::process::id()))
        };
        let told = |error| io::Error::other(format!("{}: {error}", path.display()));
        let file = Mutex::new(File::create(&path).map_err(told)?);
        Ok(Self { path, file })
    }

    /// Notes an event at the present time.
    pub fn note(&self, what: &str, mut more: Value) {
        more["at"] = micros().into();
        more["what"] = what.into();
        self.write(&more);
    }

    /// Notes an event with a time of its own.
    pub fn write(&self, entry: &Value) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // The verdict matters more than a full disk.
        let _ = writeln!(file, "{entry}");
    }
}

/// The present time in the unit of the audit log: microseconds since 1970.
pub fn micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// The same for another moment of this process.
pub fn micros_at(at: Instant) -> u64 {
    let now = Instant::now();
    let past = now.saturating_duration_since(at).as_micros();
    let ahead = at.saturating_duration_since(now).as_micros();
    let apart = |it: u128| u64::try_from(it).unwrap_or(u64::MAX);
    micros().saturating_sub(apart(past)).saturating_add(apart(ahead))
}
