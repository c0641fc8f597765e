//! Work that runs while its process leads.

mod chance;
mod ending;
mod losses;
mod shutdown;
mod standing_down;
mod support;
mod terms;
