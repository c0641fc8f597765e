//! One candidate, one lease, and what must come of it.

mod bad_input;
mod calls;
mod doubts;
mod examples;
mod expiry;
mod given_back;
mod notes;
mod odd_ends;
mod odd_looks;
mod outages;
mod possible_writers;
mod predecessors;
mod priority;
mod stops;
mod storms;
mod taken_back;
mod terms;
mod words;
