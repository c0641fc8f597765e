//! What is logged meanwhile.

use std::{
    cell::RefCell,
    io,
    sync::{Arc, Mutex, Once, PoisonError},
};
use tracing::Level;
use tracing_subscriber::{filter::dynamic_filter_fn, fmt, layer::SubscriberExt};

/// The lines that one thread has logged.
#[derive(Clone, Debug, Default)]
pub struct Logs(Arc<Mutex<Vec<u8>>>);

/// Writes down what its thread logs, until it is dropped.
pub struct Capture(());

/// Where a thread's lines go.
struct ToThisThread;

thread_local! {
    static CAPTURED: RefCell<Option<Logs>> = const { RefCell::new(None) };
}

// === impl Logs ===

impl Logs {
    /// Writes down what this thread logs, at level debug and above.
    ///
    /// The subscriber is one for all threads: which callsites are asked at all is decided for the whole process.
    pub fn capture() -> (Self, Capture) {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            let wanted = |level: &Level| *level <= Level::DEBUG && CAPTURED.with_borrow(Option::is_some);
            let lines = fmt::layer().with_ansi(false).with_writer(|| ToThisThread);
            let subscriber = tracing_subscriber::registry()
                .with(lines)
                .with(dynamic_filter_fn(move |it, _| wanted(it.level())));
            tracing::subscriber::set_global_default(subscriber).expect("the only one");
            // What another thread has met meanwhile was asked too early.
            tracing::callsite::rebuild_interest_cache();
        });
        let logs = Self::default();
        CAPTURED.set(Some(logs.clone()));
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
            if let Some(Logs(lines)) = logs {
                lines.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
