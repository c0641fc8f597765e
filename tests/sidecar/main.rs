//! The sidecar as a process of its own, over real sockets, before the in-process API server. `tests/cluster/kubectl.rs` and
//! `tests/cluster/credentials.rs` have it before a real one.

mod bad_input;
mod credentials;
mod gate;
mod half_close;
mod header_table;
mod headers;
mod load;
mod options;
mod probes;
mod refusals;
mod stopping;
mod streams;
mod tunnels;

use test_support::sidecar::{callers, process, subprotocols, upstream, wait};
