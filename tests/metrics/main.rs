//! What an exporter shows of an election, over the in-process API server, and the documents that build on it.
#![expect(unreachable_pub, reason = "the modules of a test are nobody's library")]
#![expect(clippy::float_cmp, reason = "counts are whole numbers, which a float holds as they are")]

mod allocations;
mod calls;
mod documents;
mod promql;
mod scrape;
mod state;
mod writes;

#[path = "../suite/bent.rs"]
#[expect(dead_code, reason = "the suite uses the rest of it")]
mod bent;
#[path = "../suite/support.rs"]
#[expect(dead_code, reason = "the suite uses the rest of it")]
mod support;
