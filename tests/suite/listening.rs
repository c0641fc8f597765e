//! One subscriber for all tests of this process, each of which hears its own thread.
//!
//! `tracing` decides for the whole process which callsites are asked at all, so a subscriber of one thread alone misses what
//! another thread has logged first.

use crate::{logging::heard, runtime::logs};
use std::sync::Once;
use tracing_subscriber::{filter::dynamic_filter_fn, layer::SubscriberExt};

/// Call it before a thread begins to listen.
pub fn begin() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let wanted = dynamic_filter_fn(|it, _| logs::wants(*it.level()) || heard::wants(it));
        let subscriber = tracing_subscriber::registry().with(logs::layer()).with(heard::Ear).with(wanted);
        tracing::subscriber::set_global_default(subscriber).expect("the only one");
    });
    // What another thread has met meanwhile was asked too early.
    tracing::callsite::rebuild_interest_cache();
}
