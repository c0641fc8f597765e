//! A model of the election: candidates on one lease, all that the network, the API server and their machines may do to
//! them, and a checker that tries every order of it.
//!
//! The candidates decide with the shipped code: each of ours is a `Machine`. The other one decides
//! as client-go does. By default all are prompt, and each deviation is a *fault* from a budget: so the checker reaches
//! every combination of so many faults, in every order of the candidates' steps.
//!
//! `rival` is a candidate of ours, `client_go` the other elector, `server` the API server, `seat` a candidate with its clock, `race` a state of the whole, `fault` what may go
//! wrong, `step` what may happen next, `rules` what must hold.

mod client_go;
mod fault;
mod race;
mod rival;
mod rules;
mod seat;
mod server;
mod step;
mod tests;
