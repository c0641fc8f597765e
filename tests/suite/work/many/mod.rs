//! A hundred elections in one process, and the parts that they share.

mod apart;
mod crowded;
mod ending;
mod leading;
mod reconnecting;
pub mod replica;
mod watching;
