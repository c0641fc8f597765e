//! The program of `docs/GETTING_STARTED.md` that works only while it leads.
#![allow(clippy::unused_async, reason = "the program is for a first look")]

include!(concat!(env!("OUT_DIR"), "/leading_only.rs"));
