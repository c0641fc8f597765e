//! What the crate promises, over real sockets and in real time: against a real kube-apiserver (see `tests/apiserver`),
//! and the same against the in-process API server.
#![expect(unreachable_pub, reason = "the modules of a test are nobody's library")]

#[path = "../apiserver/mod.rs"]
mod apiserver;
mod candidate;
mod conformance;
mod differential;
mod events;
mod fixture;
mod guides;
mod interop;
mod line;
mod outsider;
mod rbac;
mod real;
mod support;
mod world;
