//! Records what this crate logs.

use crate::observers::listening;
use std::{
    cell::RefCell,
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};
use tracing::{Metadata, Subscriber, field::Visit};
use tracing_subscriber::{Layer, layer::Context, registry::LookupSpan};

#[derive(Clone, Debug)]
pub struct Event {
    pub message: String,
    pub level: String,
    pub target: String,
    /// The names of the fields, sorted, including those without a value.
    pub fields: Vec<String>,
    /// The values of those that have one.
    pub values: BTreeMap<&'static str, String>,
    /// The place in the code: `src/gate/service.rs:68`.
    pub place: String,
}

/// What one thread, and the threads that a scene starts, have logged.
#[derive(Clone, Debug, Default)]
pub struct Heard(Arc<Mutex<Vec<Event>>>);

/// Records the events of all threads that listen.
#[derive(Debug)]
pub struct Ear;

thread_local! {
    static LISTENING: RefCell<Option<Heard>> = const { RefCell::new(None) };
}

/// Whether this thread listens to this event.
pub fn wants(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("kube_leader_gate::") && LISTENING.with_borrow(Option::is_some)
}

impl Heard {
    /// Starts to listen to this thread.
    pub fn listen() -> Self {
        listening::begin();
        let heard = Self::default();
        heard.on_this_thread();
        heard
    }

    /// What this thread listens to. A scene passes it to the threads that it starts.
    pub fn of_this_thread() -> Self {
        LISTENING.with_borrow(Clone::clone).expect("the server listens")
    }

    pub fn on_this_thread(&self) {
        LISTENING.set(Some(self.clone()));
    }

    pub fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Ear {
    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let Some(heard) = LISTENING.with_borrow(Clone::clone).filter(|_| wants(event.metadata())) else {
            return;
        };
        let metadata = event.metadata();
        let mut values = Values::default();
        event.record(&mut values);
        let message = values.0.remove("message").unwrap_or_default();
        let mut fields: Vec<String> = metadata.fields().iter().map(|field| field.name().to_owned()).collect();
        fields.retain(|field| field != "message");
        fields.sort();
        let of_election = ["election", "events", "leadership"].map(|it| format!("kube_leader_gate::{it}"));
        if of_election.iter().any(|it| metadata.target().starts_with(it))
            && !message.starts_with("connection closed")
        {
            let span = context.event_span(event).map(|span| span.name());
            let is_of_work = metadata.target().starts_with("kube_leader_gate::election::work");
            assert!(span == Some("election") || is_of_work && span == Some("work"), "{span:?}: {message}");
        }
        heard.0.lock().unwrap().push(Event {
            message,
            level: metadata.level().as_str().to_lowercase(),
            target: metadata.target().to_owned(),
            fields,
            values: values.0,
            place: format!("{}:{}", metadata.file().unwrap_or_default(), metadata.line().unwrap_or_default()),
        });
    }
}

#[derive(Default)]
struct Values(BTreeMap<&'static str, String>);

impl Visit for Values {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}
