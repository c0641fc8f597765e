//! Logs trouble once per change, not once per attempt.

use std::{fmt, sync::Arc};

/// The log target for the trouble of an election.
const TARGET: &str = "kube_leader_gate::election";

/// One sort of trouble, and whether it exists now.
#[derive(Debug)]
pub(crate) struct Complaint {
    what: &'static str,
    /// The kind of the trouble and its first message.
    raised: Option<(&'static str, Arc<str>)>,
}

impl Complaint {
    pub(crate) const fn new(what: &'static str) -> Self {
        Self { what, raised: None }
    }

    /// Logs trouble of this `kind`: as a warning if it is new, and at `debug` if it continues.
    pub(crate) fn raise(&mut self, kind: &'static str, details: &dyn fmt::Display) {
        if self.raised.as_ref().is_some_and(|(raised, _)| *raised == kind) {
            tracing::debug!(target: TARGET, error = kind, "{}: {details}", self.what);
            return;
        }
        let text: Arc<str> = format!("{}: {details}", self.what).into();
        tracing::warn!(target: TARGET, error = kind, "{text}");
        self.raised = Some((kind, text));
    }

    /// Logs that the trouble is over, if there was any.
    pub(crate) fn settle(&mut self) {
        if let Some((kind, _)) = self.raised.take() {
            tracing::info!(target: TARGET, error = kind, "no longer: {}", self.what);
        }
    }

    /// The first message of the present trouble.
    pub(crate) fn text(&self) -> Option<&Arc<str>> {
        self.raised.as_ref().map(|(_, text)| text)
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
        let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).finish();
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
