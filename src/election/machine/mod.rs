//! The machine of a candidate. It knows what the candidate has seen of the lease and has tried, and says the one thing to
//! do next. It does no I/O and has no clock: the caller passes the time.
//!
//! The caller passes in what happens: [`watched`](Machine::watched), [`answered`](Machine::answered),
//! [`order`](Machine::order), [`opened`](Machine::opened). After each it calls [`poll`](Machine::poll) until the output is a
//! wait. `docs/ARCHITECTURE.md` follows one renewal through the files.

mod answer;
mod api_health;
mod claims;
mod decide;
mod entry;
mod fate;
mod former;
mod give_back;
mod observed;
mod poll;
mod state;
mod succession;
mod update;

pub use self::{
    answer::Outcome,
    state::{Call, GateChange, Machine, Order, Output, View},
};

#[cfg(test)]
use self::{decide::Decision, state::Next};

#[cfg(test)]
mod api_health_tests;
#[cfg(test)]
mod bound_tests;
#[cfg(test)]
mod deleted_tests;
#[cfg(test)]
mod edited_tests;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod former_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod next_tests;
#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod preemption_tests;
#[cfg(test)]
mod reader_tests;
#[cfg(test)]
mod renewal_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod token_tests;
