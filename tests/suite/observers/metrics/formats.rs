//! An election's metrics beside those that a program counts with another library. A parser that accepts no more than the
//! formats allow reads what the functions of the example serve.

use crate::{
    observers::metrics::{
        beside::{one_text, two_texts},
        scrape::{Exporter, PUBLISHED, measured},
    },
    support::{pass, write},
};
use kube_leader_gate::testing::ApiServer;
use openmetrics_parser::{openmetrics::parse_openmetrics, prometheus::parse_prometheus};
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use std::collections::BTreeSet;

/// The names of the families in a text of this content type, or what is wrong with the text.
fn families(content_type: &str, text: &str) -> Result<BTreeSet<String>, String> {
    let names = match content_type.split(';').next().expect("a type") {
        "application/openmetrics-text" => parse_openmetrics(text).map(|it| it.families.into_keys().collect()),
        "text/plain" => parse_prometheus(text).map(|it| it.families.into_keys().collect()),
        other => panic!("unknown: {other}"),
    };
    names.map_err(|error| error.to_string())
}

/// An exporter with the metrics of a leader that has written.
async fn exporter_of_leader() -> Exporter {
    let exporter = Exporter::install();
    let server = ApiServer::new();
    let (running, client) = measured(&server).await;
    write(&client).await.unwrap();
    pass(PUBLISHED).await;
    drop(running);
    exporter
}

/// A registry of `prometheus-client` in which an operator counts.
fn registry_of_operator() -> Registry {
    let (mut registry, reconciliations) = (Registry::default(), Counter::<u64>::default());
    registry.register("reconciliations", "Reconciliations", reconciliations.clone());
    reconciliations.inc();
    registry
}

#[tokio::test(start_paused = true)]
async fn exporter_alone_serves_strict_text() {
    let exporter = exporter_of_leader().await;
    let families = families("text/plain", &exporter.handle().render()).expect("a text that is right");
    let typed = exporter.scrape().types.into_keys().collect();
    assert_eq!(families, typed);
    assert!(families.contains("leader_election_lease_call_duration_seconds"), "{families:?}");
}

#[tokio::test(start_paused = true)]
async fn prometheus_crate_and_exporter_share_one_text() {
    let exporter = exporter_of_leader().await;
    let registry = prometheus::Registry::new();
    let reconciliations = prometheus::IntCounter::new("reconciliations_total", "Reconciliations").unwrap();
    registry.register(Box::new(reconciliations)).unwrap();
    let text = one_text(&registry, exporter.handle()).unwrap();
    let both = families("text/plain", &text).expect("a text that is right");
    assert!(
        both.contains("reconciliations_total")
            && both.contains("leader_election_lease_call_duration_seconds"),
        "{both:?}"
    );
    assert_eq!(both.len(), exporter.scrape().types.len() + 1);

    // The one condition: no name is in both.
    let again =
        prometheus::Gauge::new("leader_election_lease_call_duration_seconds", "The same name").unwrap();
    registry.register(Box::new(again)).unwrap();
    let text = one_text(&registry, exporter.handle()).unwrap();
    families("text/plain", &text).expect_err("one name twice");
}

#[tokio::test(start_paused = true)]
async fn prometheus_client_and_exporter_serve_two_paths() {
    let (exporter, registry) = (exporter_of_leader().await, registry_of_operator());
    let serve = |path| two_texts(path, &registry, exporter.handle());
    let served = |path| {
        let (content_type, text) = serve(path).expect("a path that is served");
        families(content_type, &text).unwrap_or_else(|error| panic!("{path}: {error}\n{text}"))
    };
    assert_eq!(served("/metrics"), BTreeSet::from(["reconciliations".to_owned()]));
    assert_eq!(served("/metrics/election"), exporter.scrape().types.into_keys().collect());
    assert_eq!(serve("/"), None);
}

#[tokio::test(start_paused = true)]
async fn both_formats_in_one_text_are_refused() {
    let (exporter, registry) = (exporter_of_leader().await, registry_of_operator());
    let text = |path| two_texts(path, &registry, exporter.handle()).unwrap().1;
    let (own, election) = (text("/metrics"), text("/metrics/election"));
    // Without the blank lines and with the end at the end, it still names counters as the other format does.
    let (begun, lines) = (own.replace("# EOF\n", ""), election.replace("\n\n", "\n"));
    let texts = [format!("{own}{election}"), format!("{election}{own}"), format!("{begun}{lines}# EOF\n")];
    for text in texts {
        for content_type in ["application/openmetrics-text", "text/plain"] {
            families(content_type, &text).expect_err(&text);
        }
    }
}
