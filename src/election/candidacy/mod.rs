//! A candidate: what it knows about the lease, its own claims and its calls, and what it decides. It is pure: it does
//! no I/O, and the caller passes the time.
//!
//! `state` takes in news, with `claims`, what a candidate has tried, and `contact`, how its calls go. `opening` is
//! whether the gate may open, `judge` what the lease calls for, `decide` which call is next, `writes` what stands in it.
//! `coordination` is what a coordinator changes, with `coordinated`, what it needs to remember.

mod claims;
mod contact;
mod coordinated;
mod coordination;
mod decide;
mod judge;
mod opening;
mod state;
mod writes;

pub(super) use self::{
    decide::{Inputs, Next, Task},
    judge::Decision,
    state::Candidacy,
};

#[cfg(test)]
mod coordinated_tests;
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
#[cfg(test)]
mod token_tests;
