//! The part of a `Cargo.toml` in `docs/STACKING.md`: it names the features that the examples of that page import from.

use std::collections::BTreeSet;

const GUIDE: &str = include_str!("../../../docs/STACKING.md");
const MANIFEST: &str = include_str!("../../../Cargo.toml");

/// The blocks of code in this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let start = format!("\n```{language}\n");
    let blocks = GUIDE.split(start.as_str()).skip(1);
    blocks.map(|block| block.split_once("\n```").expect("an end").0).collect()
}

/// The modules of a crate that the examples import from. In tower and tower-http, each is a feature of the same name.
fn imported(krate: &str) -> BTreeSet<&'static str> {
    let start = format!("use {krate}::");
    let imports =
        blocks("rust").into_iter().flat_map(str::lines).filter_map(|line| line.strip_prefix(&start));
    let items = imports.flat_map(|line| line.trim_matches(['{', '}', ';']).split(", "));
    items.filter_map(|item| Some(item.split_once("::")?.0)).collect()
}

/// The version and the features of a dependency, in one line of a manifest.
fn required<'a>(manifest: &'a str, package: &str) -> (&'a str, BTreeSet<&'a str>) {
    let start = format!("{package} = {{ version = \"");
    let line = manifest.lines().find_map(|line| line.strip_prefix(&start)).expect("the package");
    let (version, rest) = line.split_once('"').expect("a version");
    let features = rest.split_once("features = [").and_then(|(_, list)| list.split_once(']'));
    let features = features.expect("features").0.split(", ").map(|feature| feature.trim_matches('"'));
    (version, features.collect())
}

#[test]
fn stacking_fragment_names_the_features_of_its_examples() {
    let fragments = blocks("toml");
    let [fragment] = fragments[..] else { panic!("{} fragments", fragments.len()) };
    for (package, krate) in [("tower", "tower"), ("tower-http", "tower_http")] {
        let (version, features) = required(fragment, package);
        assert_eq!(features, imported(krate), "{package}");
        assert!(!features.is_empty(), "{package}");
        assert_eq!(version, required(MANIFEST, package).0, "{package}: the version that the tests use");
    }
}
