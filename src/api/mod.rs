//! Calls to the API server, shared by the lease and the events: one call, a watch, and the log of
//! trouble.

mod call;
mod credentials;
mod failure;
mod rate_limited_log;
mod watch;

#[cfg(feature = "internal")]
pub(crate) use self::call::LONGEST;
pub use self::failure::without_secrets;
pub(crate) use self::{
    call::{Authorized, call, open},
    credentials::Credentials,
    rate_limited_log::RateLimitedLog,
    watch::{Change, change, lines, watch_of_all, watch_of_one},
};
