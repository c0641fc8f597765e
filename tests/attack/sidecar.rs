//! The sidecar's own modules, so that a test can serve under any policy: the command line knows only presets.
#![allow(dead_code, reason = "its main and its options are not used")]

#[path = "../../examples/sidecar/connection.rs"]
pub mod connection;
#[path = "../../examples/sidecar/exchange.rs"]
pub mod exchange;
#[path = "../../examples/sidecar/headers.rs"]
pub mod headers;
#[path = "../../examples/sidecar/hosts.rs"]
pub mod hosts;
#[path = "../../examples/sidecar/proxy.rs"]
pub mod proxy;
#[path = "../../examples/sidecar/reply.rs"]
pub mod reply;
#[path = "../../examples/sidecar/serve.rs"]
pub mod serve;
#[path = "../../examples/sidecar/socket.rs"]
pub mod socket;
#[path = "../../examples/sidecar/tunnel.rs"]
pub mod tunnel;
#[path = "../../examples/sidecar/upload.rs"]
pub mod upload;
#[path = "../../examples/sidecar/upstream.rs"]
pub mod upstream;

use std::error::Error;

/// As in its `main.rs`.
pub type Failure = Box<dyn Error + Send + Sync>;

/// For its log, which is discarded here.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    error.to_string()
}
