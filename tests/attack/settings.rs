//! What the environment says about a run.

use std::{env, str::FromStr};

/// Where the requests begin.
pub fn seed() -> u64 {
    number("ATTACK_SEED").unwrap_or_else(|| fastrand::u64(..))
}

pub fn number<T: FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")))
}
