//! One subscriber for all tests of this process. Each test gets the events of its own thread.
//!
//! `tracing` decides once per process which callsites are enabled. With a subscriber for one thread only, an event
//! that another thread logged first would be disabled.

use crate::{faults::panics::log, observers::logging::heard, work::runtime::logs};
use std::sync::Once;
use tracing_subscriber::{filter::dynamic_filter_fn, layer::SubscriberExt};

/// Call this before a thread begins to listen.
pub fn begin() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let wanted =
            dynamic_filter_fn(|it, _| logs::wants(*it.level()) || heard::wants(it) || log::wants(it));
        let heard = tracing_subscriber::registry().with(logs::layer()).with(heard::Ear);
        let subscriber = heard.with(log::Fragile).with(wanted);
        tracing::subscriber::set_global_default(subscriber).expect("the only one");
    });
    // Another thread may have met a callsite too early.
    tracing::callsite::rebuild_interest_cache();
}
