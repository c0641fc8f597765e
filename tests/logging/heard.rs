//! Listens to what this crate logs.

use std::{
    fmt,
    sync::{Arc, Mutex},
};
use tracing::{Metadata, Subscriber, field::Visit};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt},
    registry::LookupSpan,
};

#[derive(Clone, Debug)]
pub struct Event {
    pub message: String,
    pub level: String,
    pub target: String,
    /// Their names, sorted, also of those without a value.
    pub fields: Vec<String>,
    /// Where it is in the code: `src/gate/service.rs:68`.
    pub place: String,
}

#[derive(Clone, Debug, Default)]
pub struct Heard(Arc<Mutex<Vec<Event>>>);

impl Heard {
    /// Listens from here on, in all threads.
    pub fn listen() -> Self {
        let heard = Self::default();
        let subscriber = tracing_subscriber::registry().with(heard.clone());
        tracing::subscriber::set_global_default(subscriber).expect("nobody else listens");
        heard
    }

    pub fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Heard {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.target().starts_with("kube_leader_gate::")
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut message = Message::default();
        event.record(&mut message);
        let mut fields: Vec<String> = metadata.fields().iter().map(|field| field.name().to_owned()).collect();
        fields.retain(|field| field != "message");
        fields.sort();
        let of_election = ["election", "events", "leadership"].map(|it| format!("kube_leader_gate::{it}"));
        if of_election.iter().any(|it| metadata.target().starts_with(it))
            && !message.0.starts_with("connection closed")
        {
            let span = context.event_span(event).map(|span| span.name());
            assert_eq!(span, Some("election"), "{}", message.0);
        }
        self.0.lock().unwrap().push(Event {
            message: message.0,
            level: metadata.level().as_str().to_lowercase(),
            target: metadata.target().to_owned(),
            fields,
            place: format!("{}:{}", metadata.file().unwrap_or_default(), metadata.line().unwrap_or_default()),
        });
    }
}

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
