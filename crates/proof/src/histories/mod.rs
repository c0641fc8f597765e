//! Candidates that are moved on by chance.

mod alone;
mod rivals;
