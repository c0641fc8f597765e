//! `measure` puts defects and mutants into a copy of the tree, one at a time, and writes down which tests and tools find each.
//!
//! - `measure play [NAME...]` plays all changes, or those whose names contain one of these texts. It goes on where it
//!   stopped, until the code changes. It fails if nothing finds a defect that must be found.
//! - `measure alone TABLE` prints, for each file of tests, how many changes of a table it finds, and which ones it finds alone.
//! - `measure compare OLD NEW` prints which changes were found in the old table and are not in the new one, and fails if
//!   there are any.
//!
//! All changes are built at once, each behind a switch, so only one build is needed. `CHANGES` sets how many mutants there
//! are, `JOBS` how many changes are played at a time, and `MINUTES` when to stop: the table then has all defects and the
//! first mutants of the sample, which is a smaller sample. To leave a core to other work, start it with `taskset -c 1`.
//!
//! The parts, in the order of their use: `changes` reads the defects and asks cargo-mutants for its mutants; `switched` puts
//! them all into a file; `tree` makes the copy, and leaves out what does not compile; `programs` runs tests; `base` finds
//! out which test reaches which change, and how long it takes; `play` plays one change; `table` has the rows.

#![allow(unreachable_pub, reason = "a program has no callers")]

mod base;
mod changes;
mod play;
mod programs;
mod source;
mod switched;
mod table;
mod tree;

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["play", ref names @ ..] => play::all(names),
        ["alone", file] => table::alone(&table::read(file)),
        ["compare", old, new] => table::compare(&table::read(old), &table::read(new)),
        _ => {
            eprintln!("measure play [NAME...], measure alone TABLE, or measure compare OLD NEW");
            ExitCode::FAILURE
        }
    }
}

/// A number from the environment.
fn setting(name: &str, default: usize) -> usize {
    env::var(name).ok().filter(|it| !it.is_empty()).map_or(default, |it| it.parse().expect("a number"))
}

#[cfg(test)]
mod tests {
    use super::{changes, source::Source};
    use std::path::Path;

    /// Each defect replaces a text that stands once in its file, in the body of a function that can have a switch.
    #[test]
    fn each_defect_finds_its_text_once() {
        let tree = Path::new("../..");
        let (defects, mut faults) = changes::defects(tree);
        assert!(defects.len() >= 80, "only {} defects", defects.len());
        for defect in &defects {
            for edit in &defect.edits {
                let source = Source::read(tree, &edit.file);
                if !defect.in_line && source.body_around(&edit.range).is_none() {
                    faults.push(format!(
                        "{}: its text stands in no function that can have a switch",
                        defect.name
                    ));
                }
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
