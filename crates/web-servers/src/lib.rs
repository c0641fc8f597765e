//! Serves the probes of one election, `/livez`, `/readyz` and `/leader`, on three web servers. Each file is code to copy.
//! The guide `docs/GETTING_STARTED.md` shows or names it.

#![allow(clippy::must_use_candidate, reason = "code to copy into a program says less than a published crate")]

pub mod actix;
pub mod axum;
pub mod health;
pub mod hyper;
