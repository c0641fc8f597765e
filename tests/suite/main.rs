//! What the crate promises, over the in-process API server.
#![cfg(all(feature = "election", feature = "test-util"))]
#![expect(unreachable_pub, reason = "the modules of a test are nobody's library")]

mod adversity;
mod ambiguity;
mod attending;
mod bad_input;
mod bent;
mod connections;
mod dead;
mod election;
mod events;
mod flapping;
mod health;
mod http;
mod late_news;
mod leading;
mod loss;
mod many;
mod pinniped;
mod polled_on;
mod preempted;
mod priority;
mod recreated;
mod renewing;
mod silence;
mod stopping;
mod stuck;
mod support;
mod suspend;
mod taking;
mod trouble;
mod unacknowledged;
mod unanswered;
mod unopened;
mod uplink;
