//! Calls to the API server: one call, and a watch.

mod call;
mod credentials;
mod failure;
mod watch;

#[cfg(feature = "internal")]
pub(crate) use self::call::LONGEST;
pub use self::failure::without_secrets;
pub(crate) use self::{
    call::{Authorized, call, open},
    credentials::Credentials,
    watch::{Change, change, lines, watch_of_all, watch_of_one},
};
