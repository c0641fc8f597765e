//! The filters that `docs/TROUBLESHOOTING.md` recommends pass what it says, and no more.

use tracing::{Level, enabled, subscriber::with_default};
use tracing_subscriber::{EnvFilter, Registry, layer::SubscriberExt};

const DOCUMENT: &str = include_str!("../../../../docs/TROUBLESHOOTING.md");

/// The answers of a subscriber with this filter, which the document names.
fn asked<const N: usize>(filter: &str, ask: impl FnOnce() -> [bool; N]) -> [bool; N] {
    assert!(DOCUMENT.contains(&format!("`RUST_LOG={filter}`")), "the document does not name {filter}");
    with_default(Registry::default().with(EnvFilter::new(filter)), ask)
}

/// Whether a filter passes debug messages of kube's client, of kube's runtime, and of this crate.
fn passes(filter: &str) -> [bool; 3] {
    asked(filter, || {
        [
            enabled!(target: "kube_client::client", Level::DEBUG),
            enabled!(target: "kube_runtime::controller", Level::DEBUG),
            enabled!(target: "kube_leader_gate::election", Level::DEBUG),
        ]
    })
}

#[test]
fn filter_for_kube_includes_this_crate() {
    let filter = "info,kube=debug";
    assert_eq!(passes(filter), [true, true, true]);
    assert_eq!(passes_for_production(filter), [true, true, true]);
}

#[test]
fn filter_for_kubes_crates_leaves_this_crate_out() {
    let filter = "info,kube_client=debug,kube_runtime=debug";
    assert_eq!(passes(filter), [true, true, false]);
    assert_eq!(passes_for_production(filter), [true, true, false]);
}

/// Whether a filter passes errors of the user's own program and of kube, and the log lines of rejected writes.
fn passes_for_production(filter: &str) -> [bool; 3] {
    asked(filter, || {
        [
            enabled!(target: "my_operator", Level::ERROR),
            enabled!(target: "kube_client::client", Level::ERROR),
            enabled!(target: "kube_leader_gate::gate::settings", Level::DEBUG),
        ]
    })
}

#[test]
fn filter_for_production_passes_no_debug_message() {
    assert_eq!(passes("info"), [false, false, false]);
    assert_eq!(passes_for_production("info"), [true, true, false]);
}

#[test]
fn filter_for_rejected_writes_adds_only_them() {
    let filter = "info,kube_leader_gate::gate=debug";
    assert_eq!(passes(filter), [false, false, false]);
    assert_eq!(passes_for_production(filter), [true, true, true]);
}

#[test]
fn filter_for_this_crate_alone_drops_errors_of_the_program() {
    assert_eq!(passes_for_production("kube_leader_gate=info"), [false, false, false]);
}
