//! A hundred elections in one process, on what they share.

mod apart;
mod ending;
mod leading;
mod reconnecting;
mod replica;
mod watching;
