#![doc = include_str!("links.md")]
#![doc = include_str!("pictures.md")]
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
// Without the feature `metrics`, its counter has no page.
#![cfg_attr(not(feature = "metrics"), allow(rustdoc::broken_intra_doc_links))]

mod anchor;
mod cel;
mod conditions;
mod counts;
mod definition;
mod denial;
mod drift;
mod error;
mod guard;
mod hearing;
mod impersonator;
mod lock;
mod manage;
mod probe;
mod question;
pub mod refusal;
mod server;
mod writers;

#[cfg(feature = "metrics")]
pub use self::counts::WRITES_FENCED_TOTAL;
pub use self::{
    definition::Fence,
    drift::Drift,
    error::{ErrFence, ErrFenced},
    impersonator::Impersonator,
    lock::{FenceLayer, FenceLock},
    manage::Applied,
    refusal::RefusalLayer,
    writers::Writers,
};
