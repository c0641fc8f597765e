//! A `LeaseCandidate` keeps all that this crate does not own, and answers its coordinator.

pub(super) use crate::election::fuzz::candidate_body as body;

pub(super) const SEEDS: &[&str] = &[
    r#"{"metadata":{"namespace":"default","name":"me","uid":"u","resourceVersion":"3"}}"#,
    r#"{"apiVersion":"coordination.k8s.io/v1beta1","kind":"LeaseCandidate","metadata":{"namespace":"default","name":"me","uid":"u","resourceVersion":"4711","labels":{"a":"b"}},"spec":{"leaseName":"operator","binaryVersion":"1.5.0","emulationVersion":"1.4.0","strategy":"OldestEmulationVersion","pingTime":"2026-01-02T03:04:05.000006Z","renewTime":"2026-01-02T03:04:04.000006Z","more":[1,2]}}"#,
    r#"{"metadata":{"name":"me","uid":"u","resourceVersion":"x"},"spec":[1]}"#,
    r#"{"metadata":{"name":"me","uid":"u","resourceVersion":"1"},"spec":{"leaseName":"other","pingTime":"9999-12-30T22:00:00.999999999Z","renewTime":7}}"#,
    r#"{"metadata":{"name":"me","uid":"u","resourceVersion":"1"},"spec":{"leaseName":"other","pingTime":"9999-12-30T22:00:00Z","renewTime":7}}"#,
    r#"{"metadata":{"name":"me","uid":"u","resourceVersion":"1"},"spec":{"pingTime":"-009999-01-02T01:59:59Z"}}"#,
];

pub(super) const WORDS: &[&str] = &[
    "\"metadata\":",
    "\"name\":",
    "\"uid\":",
    "\"resourceVersion\":",
    "\"spec\":",
    "\"leaseName\":",
    "\"pingTime\":",
    "\"renewTime\":",
    "\"binaryVersion\":",
    "\"emulationVersion\":",
    "\"strategy\":",
    "\"operator\"",
    "\"me\"",
    "\"2026-01-02T03:04:05.000006Z\"",
    "\"9999-12-30T22:00:00.999999999Z\"",
    "\"-009999-01-02T01:59:59Z\"",
    "\"2026-01-02T03:04:05.0000009Z\"",
    "\"2016-12-31T23:59:60Z\"",
    "+02:00",
    "null",
    "0",
    "\"\"",
    "{",
    "}",
    "[",
    "]",
    ",",
];
