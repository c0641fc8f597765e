//! The documents stay short: a new user reads them in an evening.

use super::pages::{files, read, root};
use std::path::Path;

fn words(document: &Path) -> usize {
    read(document).split_whitespace().count()
}

/// The words of all documents in a folder, none of which has more than `most`.
fn together(folder: &str, most: usize) -> usize {
    let documents = files(&root().join(folder), "md");
    assert!(!documents.is_empty(), "{folder}");
    let long = documents.iter().map(|it| (words(it), it)).filter(|(words, _)| *words > most);
    assert_eq!(long.collect::<Vec<_>>(), [], "more than {most} words");
    documents.iter().map(|it| words(it)).sum()
}

#[test]
fn documents_are_short() {
    let guides = together("docs", 2_000);
    assert!(guides <= 16_000, "{guides} words in docs");
    assert!(files(&root().join("docs"), "md").len() <= 13);
    let others = [("crates", 1_800), ("tests", 600), ("benches", 600), ("src", 200)];
    let others: usize = others.iter().map(|(folder, most)| together(folder, *most)).sum();
    let (readme, contributing) = (words(&root().join("README.md")), words(&root().join("CONTRIBUTING.md")));
    assert!(readme <= 900, "{readme} words in README.md");
    let all = guides + others + readme + contributing;
    assert!(all <= 27_000, "{all} words");
}

#[test]
fn readme_shows_its_program_on_the_first_screen() {
    let readme = read(&root().join("README.md"));
    let (before, _) = readme.split_once("```rust").expect("a program");
    assert!(before.lines().count() <= 25, "{}", before.lines().count());
}
