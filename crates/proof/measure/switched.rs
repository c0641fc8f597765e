//! Puts changes into the text of a file, each behind a switch.
//!
//! A function that has changes gets a `match` as its body: one arm with the changed body for each change, and one with the body
//! as it is. A change that has its own switch is put into the body as it is.

use crate::{
    changes::{Change, Edit},
    source::Source,
};
use std::{collections::BTreeMap, fmt::Write, ops::Range};

/// The text of a file with its switches.
#[derive(Debug)]
pub struct Switched {
    pub text: String,
    /// Which lines belong to which change, and which ones to a function with these changes. The lines count from 1.
    pub arms: Vec<(Range<usize>, usize)>,
    pub functions: Vec<(Range<usize>, Vec<usize>)>,
}

/// Puts these changes, which have the numbers of their places in `all`, into a file.
pub fn switched(source: &Source, file: &str, all: &[Change]) -> Switched {
    let here = || {
        let edits = |(number, change): (usize, &'_ Change)| {
            let edits: Vec<_> = change.edits.iter().filter(|it| it.file == file).cloned().collect();
            (!edits.is_empty()).then_some((number, edits))
        };
        all.iter().enumerate().filter_map(edits)
    };
    let in_line: Vec<Edit> = here().filter(|it| all[it.0].in_line).flat_map(|it| it.1).collect();
    let mut functions = BTreeMap::<usize, (Range<usize>, Vec<(usize, Edit)>)>::new();
    for (number, edits) in here().filter(|it| !all[it.0].in_line) {
        let [edit] = &edits[..] else { panic!("{}: more than one text in a file", all[number].name) };
        let body =
            source.body_around(&edit.range).unwrap_or_else(|| panic!("{}: in no function", all[number].name));
        let changes = functions.entry(body.start).or_insert_with(|| (body.clone(), Vec::new()));
        changes.1.push((number, edit.clone()));
    }
    let mut switched = Switched { text: String::new(), arms: Vec::new(), functions: Vec::new() };
    let mut done = 0;
    // Up to this byte, the text is copied as it is, but for the changes that have their own switch.
    let copy = |to: &mut String, range: Range<usize>| {
        let within = |it: &&Edit| range.start <= it.range.start && it.range.end <= range.end;
        let mut edits: Vec<_> = in_line.iter().filter(within).collect();
        edits.sort_by_key(|it| it.range.start);
        let mut at = range.start;
        for edit in edits {
            to.push_str(&source.text[at..edit.range.start]);
            to.push_str(&edit.text);
            at = edit.range.end;
        }
        to.push_str(&source.text[at..range.end]);
    };
    let line = |text: &str| text.matches('\n').count() + 1;
    for (body, changes) in functions.values() {
        let (text, begins) = (&mut switched.text, body.start);
        copy(text, done..begins);
        let first = line(text);
        let site = changes[0].0;
        let _ = write!(text, "\nmatch crate::defect::at({}) {{\n", site + 1);
        for (number, edit) in changes {
            let begins = line(text);
            let before = &source.text[body.start..edit.range.start];
            let after = &source.text[edit.range.end..body.end];
            let _ = write!(text, "{} => {{{before}{}{after}\n}}\n", number + 1, edit.text);
            switched.arms.push((begins..line(text), *number));
        }
        text.push_str("_ => {");
        copy(text, body.clone());
        text.push_str("\n}\n}\n");
        let last = line(text);
        switched.functions.push((first..last + 1, changes.iter().map(|it| it.0).collect()));
        done = body.end;
    }
    copy(&mut switched.text, done..source.text.len());
    for edit in &in_line {
        assert!(
            switched.text.contains(&edit.text),
            "{file}: a replacement crosses the edge of a function:\n{}",
            edit.text
        );
    }
    switched
}
