//! Elections that rely on a fence, over the in-process API server, in paused time. It has no admission policies, so `wall`
//! plays the API server's fence in front of it. The package's tests on a real kube-apiserver are in `tests/cluster/fence` of
//! the repository.
#![expect(unreachable_pub, reason = "no other crate uses the modules of a test")]

mod cancelled;
mod looking;
mod old_server;
mod opening;
mod refusals;
mod refused_settings;
mod support;
mod wall;
