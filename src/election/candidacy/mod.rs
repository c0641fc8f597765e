//! A candidate: what it knows about the lease, its own claims and its calls, and what it decides. It is pure: it does
//! no I/O, and the caller passes the time.
//!
//! `state` is what a candidate knows, with `claims`, what it has tried, and `contact`, how its calls go. `news` takes in
//! news, and `former` is who may still write. `opening` is whether the gate may open, `standby` when it is
//! this candidate's turn, `judge` what the lease calls for, `decide` which call is next, `writes` what stands in it.
//! `coordination` is what a coordinator changes, with `coordinated`, what it needs to remember.

mod claims;
mod contact;
mod coordinated;
mod coordination;
mod decide;
mod former;
mod judge;
mod news;
mod opening;
mod standby;
mod state;
mod writes;

pub(super) use self::{
    decide::{Inputs, Next, Task},
    judge::Decision,
    state::Candidacy,
};

#[cfg(test)]
mod bound_tests;
#[cfg(test)]
mod contact_tests;
#[cfg(test)]
mod coordinated_tests;
#[cfg(test)]
mod crowd_tests;
#[cfg(test)]
mod crowd_world;
#[cfg(test)]
mod deleted_tests;
#[cfg(test)]
mod edited_tests;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod former_tests;
#[cfg(test)]
mod model;
#[cfg(test)]
mod next_calls;
#[cfg(test)]
mod next_tests;
#[cfg(test)]
mod next_world;
#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod renewal_tests;
#[cfg(test)]
mod rivals_server;
#[cfg(test)]
mod rivals_tests;
#[cfg(test)]
mod rivals_world;
#[cfg(test)]
mod standby_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod token_tests;
