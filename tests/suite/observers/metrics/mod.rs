//! What an exporter shows of an election over the in-process API server, and the documents that use it.
#![expect(clippy::float_cmp, reason = "counts are whole numbers, which a float holds as they are")]

#[path = "../../../../examples/metrics_beside_another_library.rs"]
mod beside;
mod calls;
mod documents;
mod formats;
pub mod scrape;
mod state;
mod writes;
