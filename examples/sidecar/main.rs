//! The gate beside a program that is not written in Rust.
fn main() {}
