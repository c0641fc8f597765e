//! A hundred elections in one process, on what they share.

mod apart;
mod ending;
mod leading;
mod reconnecting;
pub mod replica;
mod watching;
