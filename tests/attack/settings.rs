//! The settings of a run, from the environment.

use std::{env, str::FromStr};

/// The seed of the requests.
pub fn seed() -> u64 {
    number("ATTACK_SEED").unwrap_or_else(|| fastrand::u64(..))
}

pub fn number<T: FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")))
}
