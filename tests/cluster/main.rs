//! Against a real kube-apiserver: see `tests/apiserver`.
#![expect(unreachable_pub, reason = "the modules of a test are nobody's library")]

#[path = "../apiserver/mod.rs"]
mod apiserver;
mod fixture;
