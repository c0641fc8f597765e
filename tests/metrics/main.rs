//! What an exporter shows of an election, over the in-process API server, and the documents that build on it.
#![expect(unreachable_pub, reason = "the modules of a test are nobody's library")]

mod allocations;
mod calls;
mod documents;
mod promql;
mod scrape;
mod state;
mod writes;

#[path = "../suite/support.rs"]
#[expect(dead_code, reason = "the suite uses the rest of it")]
mod support;
