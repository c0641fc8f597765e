//! The guides: from a first operator to the alerts.
//!
//! Each page is a file of `docs/` in the repository. This module holds text only: it exists in the documentation, not
//! in a build.
//!
//! A new user reads [Getting started](getting_started) first and [the guarantees](guarantees) second.

/// Makes one module for each document, with the document's name. `links.md` comes first, and the first definition of
/// a label counts. So the same link in a document leads to a file on GitHub and to a page here.
macro_rules! pages {
    ($($(#[$when:meta])* $page:ident: $file:literal, $summary:literal;)*) => {$(
        $(#[$when])*
        #[doc = $summary]
        #[doc = ""]
        #[doc = include_str!("links.md")]
        #[doc = include_str!(concat!("../../docs/", $file))]
        pub mod $page {}
    )*};
}

pages! {
    #[cfg(any(not(doctest), feature = "runtime"))]
    getting_started: "GETTING_STARTED.md", "From an empty folder to two replicas of an operator.";
    guarantees: "GUARANTEES.md", "The rules S1 to S15, what does not hold, and what to do with a refused write.";
    timing: "TIMING.md", "Which lease, renew and retry times to choose.";
    #[cfg(any(not(doctest), feature = "runtime"))]
    rollout: "ROLLOUT.md", "Manifests, permissions, and what happens between SIGTERM and the end of the process.";
    #[cfg(any(not(doctest), feature = "test-util"))]
    production: "PRODUCTION.md", "A checklist, with a command or a test for each item.";
    // The package web-servers compiles and tests its code: no other package has these web servers.
    #[cfg(not(doctest))]
    web_servers: "WEB_SERVERS.md", "The probes with axum, actix-web, hyper and others.";
    stacking: "STACKING.md", "Where the gate stands among timeouts, retries, limits and traces.";
    compatibility: "COMPATIBILITY.md", "Which versions of kube, Kubernetes and Rust fit, and an operator that stays on kube 3 or 4.";
    #[cfg(any(not(doctest), feature = "election"))]
    fencing_tokens: "FENCING_TOKENS.md", "Writes to databases and cloud APIs: guard them, and let the store refuse a late one.";
    troubleshooting: "TROUBLESHOOTING.md", "From a line of the log or an error to its cause.";
    logging: "LOGGING.md", "Every log message, with its level and its fields.";
    #[cfg(any(not(doctest), feature = "metrics"))]
    metrics: "METRICS.md", "Every metric, the alerts and the dashboard.";
    migrating: "MIGRATING.md", "From client-go, Pinniped, kubert and others to this crate.";
    many: "MANY.md", "Many elections in one process, over shared connections.";
    crowds: "CROWDS.md", "Tens or hundreds of candidates on one lease: who goes first, and what it costs.";
    priority: "PRIORITY.md", "A preferred replica takes the lease from a live one.";
    #[cfg(any(not(doctest), feature = "election"))]
    coordinated: "COORDINATED.md", "Beta: the API server chooses the leader, by version.";
    early_takeover: "EARLY_TAKEOVER.md", "A follower takes over when the leader's container has ended, before the lease runs out.";
    #[cfg(any(not(doctest), feature = "fence"))]
    fencing: "FENCING.md", "The API server refuses what a former leader sent too late.";
    sidecar: "SIDECAR.md", "The gate as a proxy, for programs in any language.";
    sidecar_http: "SIDECAR_HTTP.md", "How the sidecar treats connections, limits and each header.";
    comparison: "COMPARISON.md", "Measured numbers, and how other electors compare.";
    security: "SECURITY.md", "Who can take a lease, what a stolen token can do, and what the gate does not stop.";
    verification: "VERIFICATION.md", "Which tool checks which rule, how far, and which defects it has found.";
    simulation: "SIMULATION.md", "Whole replicas on a simulated network: how seeds are played, and how to read one that fails.";
    performance: "PERFORMANCE.md", "This crate beside other electors, played by one command, and what an election costs.";
}
