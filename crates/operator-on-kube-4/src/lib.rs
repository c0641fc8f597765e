//! A small operator that stays on kube 4, while the election runs on kube-client 5. These are the files to copy.

pub mod caught_up;
pub mod client;
pub mod operator;
