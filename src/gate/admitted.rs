//! What is kept of a write while it is under way.

use crate::request::Verb;

/// What is kept of an admitted write for its error: the verb of a request, or the label of another write. It is small,
/// since the response future carries it.
pub trait Admitted: Copy {
    /// The verb, if it is a request.
    fn verb(self) -> Option<Verb>;

    /// The label, if it is not.
    fn label(self) -> Option<&'static str>;
}

impl Admitted for Verb {
    fn verb(self) -> Option<Verb> {
        Some(self)
    }

    fn label(self) -> Option<&'static str> {
        None
    }
}

impl Admitted for &'static str {
    fn verb(self) -> Option<Verb> {
        None
    }

    fn label(self) -> Option<&'static str> {
        Some(self)
    }
}
