//! The operator of the examples: as processes before a real API server, and in paused time over the in-process one.
#![expect(unreachable_pub, reason = "the modules of a test are nobody's library")]

#[path = "../apiserver/mod.rs"]
mod apiserver;
mod changes;
mod crash;
#[path = "../common/example.rs"]
mod example;
#[path = "../../examples/operator/operator.rs"]
mod operator;
mod process;
mod rbac;
#[path = "../../examples/operator/report.rs"]
mod report;
mod rollouts;
mod show;
#[path = "../../examples/operator/user.rs"]
mod user;
mod world;
