//! Objects: how the server reads, checks and keeps them.

pub(crate) mod decode;
mod event;
pub(crate) mod ids;
pub(crate) mod kinds;
pub(crate) mod members;
pub(crate) mod names;
pub(crate) mod stored;
pub(crate) mod time;
mod typed;
pub(crate) mod validate;
pub(crate) mod version;
