//! Candidates, and the API server with their lease.

mod rival;
mod server;

pub(crate) use self::{
    rival::{NEVER, Rival, at},
    server::Server,
};
