//! The documents and files that the tests of this folder read.

use pulldown_cmark::{Options, Parser};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The root of the crate.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files in `folder` and below it whose names end like this.
pub fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|it| it == ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

pub fn events(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
}

/// The guides, which rustdoc shows too.
pub fn guides() -> Vec<PathBuf> {
    let mut guides = files(&root().join("docs"), "md");
    guides.retain(|it| !it.ends_with("ARCHITECTURE.md"));
    guides
}

/// All pages, also those of the packages.
pub fn documents() -> Vec<PathBuf> {
    let others = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|page| root().join(page));
    let folders = ["docs", "examples", "tests", "benches", "crates"];
    let pages = folders.iter().flat_map(|folder| files(&root().join(folder), "md"));
    // The files of addresses of rustdoc are no pages.
    let pages = pages.filter(|page| !page.ends_with("src/links.md") && !page.ends_with("src/pictures.md"));
    others.into_iter().chain(pages).collect()
}
