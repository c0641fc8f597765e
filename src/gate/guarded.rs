//! How a guarded future fails.

use std::{error::Error, fmt};

/// The error of a [guarded](crate::Leadership::guard) future: [`ErrNotLeader`](super::ErrNotLeader),
/// [`ErrLeadershipLost`](super::ErrLeadershipLost), or the future's own error.
///
/// Its [`source`](Error::source) is the error inside, and its text is the text of the error inside. So
/// [`ErrNotLeader::find`](super::ErrNotLeader::find) also works if an error of your own is `#[error(transparent)]` (thiserror)
/// around this one.
#[derive(Debug)]
pub struct ErrGuarded(Box<dyn Error + Send + Sync>);

// === impl ErrGuarded ===

impl ErrGuarded {
    /// The error inside.
    #[must_use]
    pub fn into_inner(self) -> Box<dyn Error + Send + Sync> {
        self.0
    }
}

impl From<Box<dyn Error + Send + Sync>> for ErrGuarded {
    fn from(error: Box<dyn Error + Send + Sync>) -> Self {
        Self(error)
    }
}

impl fmt::Display for ErrGuarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for ErrGuarded {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}
