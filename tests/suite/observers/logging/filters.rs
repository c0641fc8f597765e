//! The filters that `docs/TROUBLESHOOTING.md` recommends pass what it says, and no more.

use tracing::{Level, enabled, subscriber::with_default};
use tracing_subscriber::{EnvFilter, Registry, layer::SubscriberExt};

const DOCUMENT: &str = include_str!("../../../../docs/TROUBLESHOOTING.md");

/// Whether a filter of the document passes debug messages of kube's client, of kube's runtime, and of this crate.
fn passes(filter: &str) -> [bool; 3] {
    assert!(DOCUMENT.contains(&format!("`RUST_LOG={filter}`")), "the document does not name {filter}");
    with_default(Registry::default().with(EnvFilter::new(filter)), || {
        [
            enabled!(target: "kube_client::client", Level::DEBUG),
            enabled!(target: "kube_runtime::controller", Level::DEBUG),
            enabled!(target: "kube_leader_gate::election", Level::DEBUG),
        ]
    })
}

#[test]
fn filter_for_kube_includes_this_crate() {
    assert_eq!(passes("kube=debug"), [true, true, true]);
}

#[test]
fn filter_for_kubes_crates_leaves_this_crate_out() {
    assert_eq!(passes("kube_client=debug,kube_runtime=debug"), [true, true, false]);
}

#[test]
fn filter_for_production_passes_no_debug_message() {
    assert_eq!(passes("kube_leader_gate=info"), [false, false, false]);
}
