//! What this crate and its libraries log during these tests, as text.

use crate::observers::listening;
use std::{
    cell::RefCell,
    io,
    sync::{Arc, Mutex, PoisonError},
};
use tracing::{Level, Subscriber};
use tracing_subscriber::{Layer, fmt, registry::LookupSpan};

/// The lines that one thread has logged.
#[derive(Clone, Debug, Default)]
pub struct Logs(Arc<Mutex<Vec<u8>>>);

/// Records what its thread logs, until it is dropped.
pub struct Capture(());

/// Where a thread's lines go.
struct ToThisThread;

thread_local! {
    static CAPTURED: RefCell<Option<(Logs, Level)>> = const { RefCell::new(None) };
}

/// Whether this thread records events of this level.
pub fn wants(level: Level) -> bool {
    CAPTURED.with_borrow(|captured| captured.as_ref().is_some_and(|(_, most)| level <= *most))
}

/// Records the lines of all threads that listen.
pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    fmt::layer().with_ansi(false).with_writer(|| ToThisThread)
}

// === impl Logs ===

impl Logs {
    /// Records what this thread logs, at level debug and above.
    pub fn capture() -> (Self, Capture) {
        Self::capture_up_to(Level::DEBUG)
    }

    /// Records what this thread logs, up to this level.
    pub fn capture_up_to(most: Level) -> (Self, Capture) {
        listening::begin();
        let logs = Self::default();
        CAPTURED.set(Some((logs.clone(), most)));
        (logs, Capture(()))
    }

    pub fn lines(&self) -> Vec<String> {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
    }

    pub fn containing(&self, what: &str) -> Vec<String> {
        self.lines().into_iter().filter(|line| line.contains(what)).collect()
    }
}

// === impl Capture ===

impl Drop for Capture {
    fn drop(&mut self) {
        CAPTURED.set(None);
    }
}

// === impl ToThisThread ===

impl io::Write for ToThisThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        CAPTURED.with_borrow(|logs| {
            if let Some((Logs(lines), _)) = logs {
                lines.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
