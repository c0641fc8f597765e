//! Work that runs while its process leads.

mod chance;
mod computing;
mod ending;
mod losses;
mod shutdown;
mod standing_down;
pub mod support;
mod terms;
mod unanswered;
