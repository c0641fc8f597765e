//! What is said of an error.

use kube_leader_gate::extension::one_line;
use std::{error::Error, iter};

/// Any error, for the user.
pub type Failure = Box<dyn Error + Send + Sync>;

/// An error and its causes as one line.
///
/// Many libraries repeat their cause: a repetition is left out. And further lines: of a broken kubeconfig, they would show
/// the token.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let text =
        iter::successors(Some(error), |&error| error.source()).fold(String::new(), |text, error| match error
            .to_string()
            .lines()
            .next()
        {
            Some(line) if text.is_empty() => line.to_owned(),
            Some(line) if !text.contains(line) => format!("{text}: {line}"),
            _ => text,
        });
    one_line(&text)
}
