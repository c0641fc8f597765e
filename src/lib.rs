//! Only the leader writes: a tower layer for Kubernetes clients, and the election that drives it.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod policy;
pub mod request;
#[cfg(feature = "test-util")]
pub mod testing;
