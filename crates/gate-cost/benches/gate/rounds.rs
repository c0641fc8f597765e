//! Rounds in which all subjects take turns, so that a noisy machine disturbs all alike.

use crate::subjects::{BATCH, Subject, subjects};
use std::time::Instant;

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Nanoseconds per request: for each subject, one figure per round.
fn taking_turns(subjects: &mut [Subject], rounds: usize) -> Vec<Vec<f64>> {
    let mut figures = vec![Vec::with_capacity(rounds); subjects.len()];
    for round in 0..rounds {
        for turn in 0..subjects.len() {
            let index = (round + turn) % subjects.len();
            let mut requests = subjects[index].batch();
            let begin = Instant::now();
            (subjects[index].run)(&mut requests);
            let nanos = u32::try_from(begin.elapsed().as_nanos()).unwrap_or(u32::MAX);
            figures[index].push(f64::from(nanos) / f64::from(u32::try_from(BATCH).expect("small")));
        }
    }
    figures
}

/// Prints medians over the rounds. A difference is the median of the differences within a round.
pub(crate) fn summary(rounds: usize) {
    let mut subjects = subjects();
    taking_turns(&mut subjects, rounds.div_ceil(10));
    let figures = taking_turns(&mut subjects, rounds);
    let figure = |name: &str| {
        let index = subjects.iter().position(|subject| subject.name == name).expect("a subject");
        &figures[index]
    };
    println!("\nmedian of {rounds} rounds in which all take turns, {BATCH} requests each:");
    for (subject, figures) in subjects.iter().zip(&figures) {
        println!("  {:<38} {:>7.1} ns", subject.name, median(figures.clone()));
    }
    println!("what is added to the bare service:");
    for (name, bare, aim) in [
        ("read, no-op layer", "read, bare", None),
        ("read, gate", "read, bare", Some(60)),
        ("reads, mixed, gate", "reads, mixed, bare", None),
        ("read, gate, metric", "read, bare", None),
        ("write, no-op layer", "write, bare", None),
        ("write, gate, admitted", "write, bare", Some(200)),
        ("read, whole stack", "read, bare", Some(100)),
        ("write, refusals alone", "write, bare", None),
        ("write, gate, deadline", "write, bare", None),
        ("write, gate, refusals", "write, bare", None),
        ("write, whole stack", "write, bare", Some(350)),
    ] {
        let added = figure(name).iter().zip(figure(bare)).map(|(with, without)| with - without).collect();
        let ratio = figure(name).iter().zip(figure(bare)).map(|(with, without)| with / without).collect();
        let aim = aim.map(|aim| format!(", aim: {aim} ns")).unwrap_or_default();
        println!("  {name:<38} {:>7.1} ns ({:.2} times{aim})", median(added), median(ratio));
    }
    let refused = figure("write, gate, rejected, before boxing");
    let dropped = figure("write, dropped at once");
    let rejection = refused.iter().zip(dropped).map(|(refused, dropped)| refused - dropped).collect();
    println!("what a rejection costs, boxing and the end of the request apart:");
    println!("  {:<38} {:>7.1} ns (aim: 60 ns)", "write, gate, rejected", median(rejection));
}
