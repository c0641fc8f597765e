//! What the documents say matches the code, and each test runs.

mod compatibility;
mod layout;
mod links;
mod manifest;
#[cfg(unix)]
mod missing;
mod pages;
mod production;
#[cfg(feature = "runtime")]
mod program;
mod quotations;
mod runner;
