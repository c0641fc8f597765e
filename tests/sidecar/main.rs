//! The sidecar as a process of its own, over real sockets, before the in-process API server; `kubectl`: before a real one.
#![expect(unreachable_pub, reason = "the modules of a test are nobody's library")]

#[path = "../apiserver/mod.rs"]
mod apiserver;
mod bad_input;
mod callers;
mod credentials;
#[path = "../common/example.rs"]
mod example;
mod gate;
mod half_close;
mod header_table;
mod headers;
mod kubectl;
mod load;
mod options;
mod probes;
mod process;
mod refusals;
mod stopping;
mod streams;
mod tunnels;
mod upstream;
mod wait;
