//! How requests come in and answers go out: the tower service, the port, and the steps between them.

pub(crate) mod body;
mod discovery;
pub(crate) mod endpoint;
mod handler;
mod render;
pub(crate) mod service;
mod watch;
