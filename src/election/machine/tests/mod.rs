//! One candidate, one lease, and what must come of it.

mod bad_input;
mod calls;
mod examples;
mod former_writers;
mod hostile;
mod notes;
mod priority;
mod stops;
mod terms;
