//! The first program of `docs/GETTING_STARTED.md`.
#![allow(clippy::needless_pass_by_value, reason = "the program is for a first look")]

include!(concat!(env!("OUT_DIR"), "/getting_started.rs"));
