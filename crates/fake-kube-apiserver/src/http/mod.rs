//! The way in and out: the tower service, the sockets, and from a request to its answer.

pub(crate) mod body;
mod discovery;
pub(crate) mod endpoint;
mod handler;
pub(crate) mod service;
mod watch;
