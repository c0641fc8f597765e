//! Trouble is logged once per change, not once per attempt.

use std::fmt;

#[derive(Debug)]
pub(super) struct Complaint {
    what: &'static str,
    raised: Option<&'static str>,
}

impl Complaint {
    pub(super) const fn new(what: &'static str) -> Self {
        Self { what, raised: None }
    }

    /// Logs trouble of this `kind`: a warning when it is news, for debugging when it goes on.
    pub(super) fn raise(&mut self, kind: &'static str, details: &dyn fmt::Display) {
        if self.raised.replace(kind) == Some(kind) {
            tracing::debug!(error = kind, "{}: {details}", self.what);
        } else {
            tracing::warn!(error = kind, "{}: {details}", self.what);
        }
    }

    /// Logs that the trouble is over, if there was some.
    pub(super) fn settle(&mut self) {
        if let Some(kind) = self.raised.take() {
            tracing::info!(error = kind, "no longer: {}", self.what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io,
        sync::{Arc, Mutex},
    };
    use tracing_subscriber::fmt::MakeWriter;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Lines {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn trouble_is_logged_once_per_change() {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
        tracing::subscriber::with_default(subscriber, || {
            let mut complaint = Complaint::new("lease calls fail");
            complaint.settle();
            for _ in 0..100 {
                complaint.raise("forbidden", &"403");
            }
            complaint.raise("timeout", &"no answer");
            complaint.settle();
            complaint.settle();
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let levels: Vec<_> = text.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(levels, ["WARN", "WARN", "INFO"], "{text}");
    }
}
