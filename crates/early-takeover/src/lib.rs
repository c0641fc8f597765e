#![doc = include_str!("links.md")]
#![doc = include_str!("../README.md")]
//!
//! # How it works
//! [`EarlyTakeover`] is a [layer](kube_leader_gate::extension::LockLayer) of the election's lock.
//! [`EarlyTakeoverLock`] is the lock that it makes. A task of that lock watches the holder's pod. It begins with the first
//! look at the lease, and ends when the lock is dropped.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod ended;
mod follow;
mod holder;
mod lock;
mod pods;
mod proof;
mod settings;

pub use self::{
    lock::EarlyTakeoverLock,
    settings::{EarlyTakeover, ErrInvalidEarlyTakeover},
};

#[cfg(test)]
mod lock_tests;
#[cfg(test)]
mod proof_tests;
#[cfg(test)]
mod settings_tests;
