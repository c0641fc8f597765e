//! Layers around and below the gate: the fate of a write that was admitted just before a loss, what has reached the
//! server, and which error its caller sees. `docs/STACKING.md` says which order to choose.
#![expect(unreachable_pub, reason = "no other crate uses the modules of a test")]

mod concurrency;
mod kube_retry;
mod rate;
mod recommended;
mod retry;
mod stage;
mod timeout;
mod trace;
mod wrapped;
