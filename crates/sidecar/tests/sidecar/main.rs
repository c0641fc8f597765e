//! The sidecar as a process of its own, over real sockets, in front of the in-process API server.
//! `tests/cluster/kubectl.rs` and `tests/cluster/credentials.rs` put it in front of a real one.

mod bad_input;
mod bodies;
mod callers_end;
mod credentials;
mod gate;
mod half_close;
mod header_table;
mod headers;
mod kubeconfigs;
mod lead_if;
mod load;
mod metrics;
mod options;
mod output;
mod probe;
mod probes;
mod raw_bytes;
mod refusals;
mod relist;
mod renewal;
mod repeats;
mod rough;
mod stopping;
mod stopping_at_once;
mod streams;
mod streams_of_bytes;
mod tunnels;
mod variables;

use test_support::sidecar::{callers, process, subprotocols, upstream, wait};
