//! Why a request has no answer of the API server.

use crate::failure::chain;
use kube_leader_gate::lease::ErrLock;
use std::{error::Error, fmt};
use tower::BoxError;

#[derive(Debug)]
pub(crate) enum Unanswered {
    /// There is no connection.
    Unconnected(BoxError),
    /// The connection ended.
    CutOff { error: hyper::Error, is_sent: bool },
}

/// Why the caller's body has no end, if that is the problem: it broke off, or is not valid HTTP.
pub(crate) fn broken_body(error: &BoxError) -> Option<String> {
    let Unanswered::CutOff { error: sent, .. } = error.downcast_ref()? else { return None };
    let reading = sent.source().filter(|it| sent.is_user() && it.is::<hyper::Error>())?;
    let text = chain(reading);
    Some(format!(
        "the body of the request broke off or is not valid HTTP; it is unknown whether the API server carried the \
         request out: {text}"
    ))
}

/// Describes the failure, and says whether the request may have been sent.
pub(crate) fn explain(error: &BoxError) -> (bool, String) {
    let (is_sent, failed) = match error.downcast_ref() {
        Some(Unanswered::Unconnected(error)) => (false, ErrLock::unconnected(&**error)),
        Some(Unanswered::CutOff { error, is_sent }) => (*is_sent, ErrLock::cut_off(chain(error))),
        None => {
            let why = error
                .downcast_ref()
                .map_or_else(String::new, |error: &ErrLock| format!(": {}", error.explain("")));
            return (false, format!("could not get credentials for the API server, nothing was sent{why}"));
        }
    };
    let what = if is_sent {
        "the API server did not answer; it is unknown whether it carried the request out"
    } else {
        "the API server cannot be reached, nothing was sent"
    };
    (is_sent, format!("{what}: {}", failed.explain("")))
}

// === impl Unanswered ===

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unconnected(_) => "there is no connection",
            Self::CutOff { .. } => "the connection ended",
        })
    }
}

impl Error for Unanswered {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(match self {
            Self::Unconnected(error) => &**error,
            Self::CutOff { error, .. } => error,
        })
    }
}
