//! How a term ends against the will of its holder: the gate closes first.

mod connections;
mod ended_elections;
mod loss;
mod races;
