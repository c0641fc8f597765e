//! The in-process API server, over its tower service and over real HTTP with a real client.

mod faults;
mod forms;
mod garbage;
mod http;
mod judge;
mod leases;
mod objects;
mod patches;
mod refusals;
mod script;
mod sockets;
mod support;
mod watches;
