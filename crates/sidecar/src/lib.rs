//! What the program `kube-leader-gate-sidecar` is made of. Its tests use this library. It is no interface for other
//! programs, and any version may change it.
//!
//! `args` has the settings; `kubeconfig` finds the API server. A request comes in at `serve` and `connection`, which
//! shares its `socket` with hyper, and keeps its state in `exchange`. `hosts` and `headers` check and clean it, `proxy` sends it through the gate to
//! `upstream` and the connections of `pool`, `upload` is its body, `tunnel` is what follows an upgrade, and `reply` is the answer
//! to a failure: `unanswered` says why there is no other.
//! `status` answers probes, and `probe` asks it; `metrics` is for Prometheus. `run` starts all of that and stops it in order.

#[cfg(not(unix))]
compile_error!("the sidecar runs on Linux and on other Unix systems");

mod args;
mod connection;
mod exchange;
mod failure;
mod hang_up;
mod headers;
mod hosts;
mod kubeconfig;
mod lead_if;
mod metrics;
mod pool;
mod probe;
mod proxy;
mod recurring;
mod relist;
mod reply;
mod resolve;
mod run;
mod serve;
mod status;
mod tunnel;
mod unanswered;
mod upload;
mod upstream;

pub use crate::{
    args::{Args, Order},
    failure::{Failure, chain},
    lead_if::Page,
    probe::Probe,
    run::Sidecar,
};
