//! The documents stay short: a new user reads them in an evening.

use super::pages::{files, read, root};
use std::path::Path;

fn words(document: &Path) -> usize {
    read(document).split_whitespace().count()
}

/// Fails if one of these has more words than `most`, or all of them more than `most_together`.
fn are_short(folder: &str, most: usize, most_together: usize) {
    let documents = files(&root().join(folder), "md");
    assert!(!documents.is_empty(), "{folder}");
    let long = documents.iter().map(|it| (words(it), it)).filter(|(words, _)| *words > most);
    assert_eq!(long.collect::<Vec<_>>(), [], "more than {most} words");
    let all: usize = documents.iter().map(|it| words(it)).sum();
    assert!(all <= most_together, "{all} words in {folder}, of {most_together}");
}

#[test]
fn guides_and_pages_of_packages_are_short() {
    are_short("docs", 2_000, 16_000);
    are_short("crates", 1_800, 7_500);
    are_short("tests", 600, 1_100);
    assert!(files(&root().join("docs"), "md").len() <= 13);
}

#[test]
fn readme_is_short_and_shows_its_program_early() {
    let readme = read(&root().join("README.md"));
    assert!(readme.split_whitespace().count() <= 900);
    let (before, _) = readme.split_once("```rust").expect("a program");
    assert!(before.lines().count() <= 25, "one screen to the first program");
    assert!(words(&root().join("CONTRIBUTING.md")) <= 1_500);
}
