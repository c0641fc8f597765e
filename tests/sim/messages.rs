//! Counts the log messages of the crate, by machine.

use crate::{machine::running, net::Shared};
use std::fmt::{self, Write as _};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// Receives what the crate logs on this thread.
pub struct Messages {
    pub net: Shared,
    /// Whether the messages are for the log of the run, too.
    pub keep: bool,
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // A text cannot refuse more of it.
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

impl Subscriber for Messages {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && *metadata.level() <= Level::INFO
            && metadata.target().starts_with("kube_leader_gate")
    }

    fn event(&self, event: &Event<'_>) {
        let Some(machine) = running() else { return };
        let mut net = self.net.get();
        net.messages[machine] += 1;
        if self.keep {
            let mut text = Text(String::new());
            event.record(&mut text);
            net.note(&format!("m{machine} logs: {}", text.0));
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
