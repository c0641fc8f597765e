//! An exporter for each test, and the values of its scrapes.

use crate::support::{FIRST, build, builder, gated, within};
use kube_client::Client;
use kube_leader_gate::{Policy, election::Running, metrics::BUCKETS, policy::Preset, testing::ApiServer};
use metrics::LocalRecorderGuard;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::collections::BTreeMap;

/// The exporter of this thread, set up as in a program. Each test runs on one thread.
pub struct Exporter {
    handle: PrometheusHandle,
    _here: LocalRecorderGuard<'static>,
}

/// What Prometheus would read.
#[derive(Debug, Default)]
pub struct Scrape {
    pub types: BTreeMap<String, String>,
    pub samples: Vec<Sample>,
}

#[derive(Debug)]
pub struct Sample {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

impl Exporter {
    pub fn install() -> Self {
        let mut builder = PrometheusBuilder::new();
        for &(name, buckets) in BUCKETS {
            builder = builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), buckets).unwrap();
        }
        let recorder = Box::leak(Box::new(builder.build_recorder()));
        Self { handle: recorder.handle(), _here: metrics::set_default_local_recorder(recorder) }
    }

    /// What a program renders.
    pub fn handle(&self) -> &PrometheusHandle {
        &self.handle
    }

    pub fn scrape(&self) -> Scrape {
        Scrape::parse(&self.handle.render())
    }

    /// The sum of the series of this name with these labels.
    #[track_caller]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.scrape().value(name, labels)
    }
}

impl Scrape {
    /// Prometheus' text format, as far as an exporter without exemplars and timestamps writes it.
    pub fn parse(text: &str) -> Self {
        let mut scrape = Self::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(typed) = line.strip_prefix("# TYPE ") {
                let (name, kind) = typed.split_once(' ').expect("a type");
                scrape.types.insert(name.to_owned(), kind.to_owned());
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').expect("a value");
                let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
                let labels = labels.trim_end_matches('}').split_terminator("\",").map(|label| {
                    let (label, value) = label.split_once("=\"").expect("a label");
                    (label.to_owned(), value.trim_end_matches('"').to_owned())
                });
                let value = value.parse().expect("a number");
                scrape.samples.push(Sample { name: name.to_owned(), labels: labels.collect(), value });
            }
        }
        scrape
    }

    #[track_caller]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let fits = |sample: &&Sample| {
            sample.name == name
                && labels.iter().all(|(label, value)| sample.labels.get(*label).is_some_and(|it| it == value))
        };
        let values: Vec<_> = self.samples.iter().filter(fits).map(|sample| sample.value).collect();
        assert!(!values.is_empty(), "no {name} with {labels:?} in {:#?}", self.samples);
        values.iter().sum()
    }

    pub fn has(&self, name: &str, labels: &[(&str, &str)]) -> bool {
        self.samples.iter().any(|sample| {
            sample.name == name
                && labels.iter().all(|(label, value)| sample.labels.get(*label).is_some_and(|it| it == value))
        })
    }
}

/// A candidate `a` with metrics that leads already, and its workload's client.
pub async fn measured(server: &ApiServer) -> (Running, Client) {
    let policy = Policy::strict().allow(Preset::Events);
    let election = build(server, "a", builder("a").policy(policy).metrics()).expect("a valid election");
    let client = gated(server, &election, "a");
    let running = election.start();
    within(FIRST, "the candidate leads", running.candidate().elected()).await;
    (running, client)
}

/// Longer than the age of a gauge.
pub const PUBLISHED: std::time::Duration = std::time::Duration::from_millis(1100);
