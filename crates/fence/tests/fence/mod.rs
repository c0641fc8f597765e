//! Elections that rely on a fence, in paused time. `wall` plays the API server's fence in front of the in-process API
//! server, which has no admission policies.

mod old_server;
mod opening;
mod refusals;
mod refused_settings;
pub mod wall;
