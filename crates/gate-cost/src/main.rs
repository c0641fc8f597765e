//! Counts the instructions that the gate adds to a request, and fails if they are more than they were.
//!
//! Valgrind's callgrind counts them, so a busy machine disturbs nothing. This program runs itself below callgrind with
//! few and with many requests: the difference belongs to the requests alone. Without valgrind it says so, which is a
//! failure with `CI=true`.
//!
//! The clock stands still here, since valgrind cannot run the real one. So a write costs two reads of the clock more.

mod counted;
mod subjects;

use std::{env, process::ExitCode};
use subjects::SUBJECTS;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => judge(),
        [subject, requests] => match (subjects::named(subject), requests.parse()) {
            (Some(run), Ok(requests)) => {
                run(requests);
                ExitCode::SUCCESS
            }
            _ => usage(),
        },
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    let names: Vec<_> = SUBJECTS.iter().map(|subject| subject.name).collect();
    eprintln!("usage: gate-cost [SUBJECT REQUESTS], with a subject of: {}", names.join(", "));
    ExitCode::from(2)
}

/// Prints a table, and fails if a subject costs more than it may.
fn judge() -> ExitCode {
    if let Err(error) = counted::valgrind() {
        eprintln!("gate-cost: NOTHING IS COUNTED: {error}; install valgrind (package `valgrind`)");
        let required = env::var_os("CI").is_some_and(|ci| ci == "true");
        return if required { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    println!("instructions that the gate adds to a request, by callgrind:");
    let mut verdict = ExitCode::SUCCESS;
    for subject in SUBJECTS {
        let added = counted::instructions(subject.name)
            .and_then(|with| Ok((with, counted::instructions(subject.beside)?)))
            .map(|(with, without)| with - without);
        match added {
            Ok(added) if added <= subject.at_most => {
                println!("  {:<20} {added:>5}, at most {}", subject.name, subject.at_most);
            }
            Ok(added) => {
                println!("  {:<20} {added:>5}, at most {}: TOO MANY", subject.name, subject.at_most);
                verdict = ExitCode::FAILURE;
            }
            Err(error) => {
                println!("  {:<20} cannot be counted: {error}", subject.name);
                verdict = ExitCode::FAILURE;
            }
        }
    }
    if verdict == ExitCode::FAILURE {
        println!(
            "find out why; if the cost is worth it, raise the number in crates/gate-cost/src/subjects.rs"
        );
    }
    verdict
}
