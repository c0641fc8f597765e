//! A candidate: what it knows of the lease, of its own claims and of its way to the API server, and what follows from
//! that. Pure: no I/O, and the time is handed in.
//!
//! `state` takes in news, with `claims`, what a candidate has tried, and `contact`, how its calls go. `judge` is what the
//! lease calls for, `decide` which call is next, `writes` what stands in it.

mod claims;
mod contact;
mod decide;
mod judge;
mod state;
mod writes;

pub(super) use self::{
    decide::{Inputs, Next, Task},
    judge::Decision,
    state::Candidacy,
};

#[cfg(test)]
mod next_tests;
#[cfg(test)]
mod next_world;
#[cfg(test)]
mod rivals_tests;
#[cfg(test)]
mod rivals_world;
#[cfg(test)]
mod tests;
