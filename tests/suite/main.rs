//! What the crate promises, over the in-process API server: elections, and the parts that observe or use them. And
//! what the documents say about it.
#![cfg(all(feature = "election", feature = "test-util"))]
#![expect(unreachable_pub, reason = "no other crate uses the modules of a test")]

mod adversity;
mod alone;
mod ambiguity;
mod attending;
mod bad_input;
mod bent;
mod cancelled;
mod compatibility;
mod connections;
mod contending;
mod dead;
mod docs;
mod election;
mod events;
mod fencing;
mod flapping;
mod fragment;
mod freed;
mod guarding;
mod health;
mod http;
mod late_news;
mod layers;
mod layout;
mod leading;
#[cfg(feature = "runtime")]
mod listening;
mod locks;
#[cfg(all(feature = "metrics", feature = "runtime"))]
mod logging;
mod loss;
mod many;
#[cfg(feature = "metrics")]
mod metrics;
mod not_begun;
mod panics;
mod pinniped;
mod polled_on;
mod preempted;
mod priority;
mod production;
#[cfg(feature = "runtime")]
mod program;
mod readiness;
mod recreated;
mod renewing;
mod repeated;
mod runner;
#[cfg(feature = "runtime")]
mod runtime;
#[cfg(all(feature = "metrics", feature = "runtime"))]
mod secrets;
mod silence;
mod stopping;
mod stuck;
mod support;
mod suspend;
mod taking;
mod text;
mod trouble;
mod unacknowledged;
mod unanswered;
mod unopened;
mod uplink;
