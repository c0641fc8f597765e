//! How a guarded future fails.

use std::{error::Error, fmt};

/// The error of a [guarded](crate::Leadership::guard) future: [`ErrNotLeader`](super::ErrNotLeader),
/// [`ErrLeadershipLost`](super::ErrLeadershipLost), or the future's own.
///
/// Its [`source`](Error::source) is that error, and its text is the same. So [`ErrNotLeader::find`](super::ErrNotLeader::find) finds it too behind an
/// error that shows this one as itself, such as `#[error(transparent)]` of thiserror.
#[derive(Debug)]
pub struct ErrGuarded(Box<dyn Error + Send + Sync>);

// === impl ErrGuarded ===

impl ErrGuarded {
    /// The error itself.
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
