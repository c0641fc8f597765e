//! What goes wrong, in words.

/// Any error. It ends a round or a measurement, and seldom the run.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
