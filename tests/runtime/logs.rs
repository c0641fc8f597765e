//! What is logged meanwhile.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

/// The lines of this thread's log.
#[derive(Clone, Default)]
pub struct Logs(Arc<Mutex<Vec<u8>>>);

// === impl Logs ===

impl Logs {
    /// Writes down what this thread logs, at the levels of `filter`.
    pub fn capture(filter: &str) -> (Self, DefaultGuard) {
        let logs = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new(filter))
            .with_ansi(false)
            .with_writer(logs.clone())
            .finish();
        (logs, tracing::subscriber::set_default(subscriber))
    }

    pub fn lines(&self) -> Vec<String> {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
    }

    pub fn containing(&self, what: &str) -> Vec<String> {
        self.lines().into_iter().filter(|line| line.contains(what)).collect()
    }
}

impl io::Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Logs {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
