//! What a kube-runtime controller wants.

mod feed;
mod following;
mod reconcile;
mod replay;

pub use self::{
    reconcile::{Gated, gated},
    replay::{Replay, Watched, replay, replay_with},
};
pub use kube_runtime;
