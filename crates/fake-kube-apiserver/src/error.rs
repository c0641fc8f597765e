//! The errors of a request that gets no answer.

use std::fmt;

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A fault dropped the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionDropped;

// === impl ConnectionDropped ===

impl fmt::Display for ConnectionDropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection was dropped")
    }
}

impl std::error::Error for ConnectionDropped {}
