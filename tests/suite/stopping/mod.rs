//! How a holder ends its term: the gate closes, the writes finish, then the lease is released. And dropped futures.

mod cancelled;
mod last_write;
mod past_the_grace;
mod release;
mod signals;
mod slow_uplink;
mod unanswered_writes;
