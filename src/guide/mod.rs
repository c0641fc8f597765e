//! The guides: from a first operator to the alerts.
//!
//! Each page is a file of `docs/` in the repository. This module holds text only: it exists in the documentation, not
//! in a build.
//!
//! A new user reads [Getting started](getting_started) first and [the guarantees](guarantees) second.

/// Makes one module for each document, with the document's name. `links.md` comes first, and the first definition of
/// a label counts. So the same link in a document leads to a file on GitHub and to a page here. `pictures.md` does the same
/// for pictures, which rustdoc cannot take from files.
macro_rules! pages {
    ($($(#[$when:meta])* $page:ident: $file:literal, $summary:literal;)*) => {$(
        $(#[$when])*
        #[doc = $summary]
        #[doc = ""]
        #[doc = include_str!("links.md")]
        #[doc = include_str!("pictures.md")]
        #[doc = include_str!(concat!("../../docs/", $file))]
        pub mod $page {}
    )*};
}

pages! {
    getting_started: "GETTING_STARTED.md", "From an empty folder to two replicas and a manifest: the two ways to work, probes, times as a setting, and many elections.";
    #[cfg(any(not(doctest), all(feature = "runtime", feature = "test-util")))]
    testing: "TESTING.md", "Tests that only the leader writes: a follower, a lost term, a handover, and a real API server.";
    guarantees: "GUARANTEES.md", "Can two replicas write at the same time, the states of a gate, the rules S1 to S16, and what to do with a refused write.";
    #[cfg(any(not(doctest), feature = "test-util"))]
    production: "PRODUCTION.md", "Manifests, permissions, what a stop does, what happens in an outage, and a checklist with a command or a test for each item.";
    #[cfg(any(not(doctest), feature = "runtime"))]
    first_writes: "FIRST_WRITES.md", "The first writes of a new leader: how soon, with which caches, and what a reconciler has to remember.";
    timing: "TIMING.md", "Which times to choose, the deadline of a request, a preferred leader, and leadership by hand.";
    stacking: "STACKING.md", "Where the gate stands among timeouts, retries, limits and traces.";
    compatibility: "COMPATIBILITY.md", "Which versions fit, an operator that stays on kube 3 or 4, and one that leaves another elector.";
    #[cfg(any(not(doctest), feature = "election"))]
    fencing_tokens: "FENCING_TOKENS.md", "Writes to databases and cloud APIs: guard them, and let the store refuse a late one.";
    troubleshooting: "TROUBLESHOOTING.md", "From an error or a line of the log to its cause.";
    #[cfg(any(not(doctest), feature = "metrics"))]
    metrics: "METRICS.md", "Every metric, the alerts and the dashboard.";
    results: "RESULTS.md", "Measured numbers, this crate beside other electors, and what an election costs.";
    security: "SECURITY.md", "Who can take a lease, what a stolen token can do, and what the gate does not stop.";
    verification: "VERIFICATION.md", "What was played against the rules, how much of it, and what no test shows.";
}
