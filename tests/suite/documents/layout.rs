//! The files of each package import one another in one direction. And no test is lost.

use super::pages;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Each file, by its place in the tree of modules, with its text.
type Files = BTreeMap<Vec<String>, String>;

/// Each file with the files that it imports from.
type Imports = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

#[test]
fn no_files_import_in_a_circle() {
    let packages = [
        (".", 80),
        ("benches/peers/driver", 20),
        ("crates/early-takeover", 7),
        ("crates/election-sim", 5),
        ("crates/fake-kube-apiserver", 40),
        ("crates/fence", 20),
        ("crates/gate-cost", 4),
        ("crates/operator-on-kube-4", 3),
        ("crates/proof", 15),
        ("crates/sidecar", 12),
        ("crates/test-support", 10),
        ("crates/web-servers", 4),
    ];
    for (package, at_least) in packages {
        let mut files = Files::new();
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(package).join("src"), &[], &mut files);
        assert!(files.len() > at_least, "{package}: only {} files", files.len());
        let left = circles(imports(&files));
        assert!(
            left.is_empty(),
            "{package}: these files import one another in a circle, or are between circles: {left:#?}"
        );
    }
}

/// In a target with a harness of its own, the compiler drops a function with `#[test]`.
#[test]
fn targets_without_harness_have_no_test_attributes() {
    let root = pages::root();
    let manifest = pages::read(&root.join("Cargo.toml"));
    let sections = manifest.split("\n[[test]]\n").skip(1).filter(|it| it.contains("harness = false"));
    let name = |section: &str| section.split('"').nth(1).expect("a name").to_owned();
    let targets: Vec<_> = sections.map(name).collect();
    assert!(targets.iter().any(|it| it == "cluster"), "{targets:?}");
    for file in targets.iter().flat_map(|target| pages::files(&root.join("tests").join(target), "rs")) {
        let lost = pages::read(&file).lines().any(|line| {
            let line = line.trim_start();
            line.starts_with("#[test") || line.starts_with("#[tokio::test")
        });
        assert!(!lost, "{}: name its tests in main.rs instead", file.display());
    }
}

#[test]
fn scanner_follows_braces_and_skips_comments() {
    let mut files = Files::from(["", "a", "b::mod", "d"].map(|it| (module(it), String::new())));
    files.insert(
        module("b::c"),
        "use crate::{a::{Thing, self}, b::{c::Own, Other,},};\nuse super::Type; // use crate::d;\n\
         pub(in crate::d) struct Own;\n#[cfg(test)]\nmod tests {\n    use crate::d;\n}"
            .into(),
    );
    let found = &imports(&files)[&module("b::c")];
    assert_eq!(*found, BTreeSet::from([module("a"), module("b")]));
}

#[test]
fn circular_import_is_found() {
    let text =
        [("a", "use crate::b::B;"), ("b", "fn f() { super::c::f(crate::d::D) }"), ("c", "use super::a;")];
    let mut files: Files = text.map(|(file, text)| (module(file), text.to_owned())).into();
    files.insert(module("d"), String::new());
    assert_eq!(circles(imports(&files)), [module("a"), module("b"), module("c")].into());
}

fn module(path: &str) -> Vec<String> {
    path.split("::").filter(|it| !matches!(*it, "" | "lib" | "mod")).map(str::to_owned).collect()
}

fn read(folder: &Path, at: &[String], files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let here = [at, &module(path.file_stem().unwrap().to_str().unwrap())].concat();
        if path.is_dir() {
            read(&path, &here, files);
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.insert(here, fs::read_to_string(&path).unwrap());
        }
    }
}

fn imports(files: &Files) -> Imports {
    let imports = files.iter().map(|(file, text)| {
        // Unit tests are at the end of a file.
        let code = text.split("\nmod tests {").next().unwrap_or_default();
        let code: String = code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
        // A visibility is no import.
        let code = code.replace("(in crate::", "(");
        let starts = ["crate::", "super::", "self::"].map(|word| code.match_indices(word));
        let paths = starts.into_iter().flatten().flat_map(|(at, _)| paths(&code[at..]));
        let targets = paths.map(|path| target(files, file, &path)).filter(|it| it != file);
        (file.clone(), targets.collect())
    });
    imports.collect()
}

/// The paths that a path with braces lists.
fn paths(code: &str) -> Vec<Vec<String>> {
    let code = code.trim_start();
    let end = code.find(|it: char| !it.is_alphanumeric() && it != '_').unwrap_or(code.len());
    let (word, rest) = code.split_at(end);
    let Some(rest) = rest.strip_prefix("::") else {
        return vec![module(word)];
    };
    let tails = match rest.strip_prefix('{') {
        Some(group) => items(group).into_iter().filter(|it| !it.trim().is_empty()).flat_map(paths).collect(),
        None => paths(rest),
    };
    tails.into_iter().map(|tail| [module(word), tail].concat()).collect()
}

/// The parts between commas, up to the closing brace.
fn items(group: &str) -> Vec<&str> {
    let (mut items, mut begin, mut depth) = (Vec::new(), 0, 0);
    for (at, it) in group.char_indices() {
        match it {
            '{' => depth += 1,
            '}' if depth == 0 => {
                items.push(&group[begin..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&group[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    items
}

/// The file that a path in `file` names.
fn target(files: &Files, file: &[String], path: &[String]) -> Vec<String> {
    let (first, rest) = path.split_first().unwrap();
    let base = match first.as_str() {
        "crate" => &[][..],
        "super" => &file[..file.len().saturating_sub(1)],
        _ => file,
    };
    let mut target = [base, rest].concat();
    while !files.contains_key(&target) {
        target.pop();
    }
    target
}

/// The files that remain after removing, again and again, those that import none of the rest and those that none of
/// the rest imports.
fn circles(mut imports: Imports) -> BTreeSet<Vec<String>> {
    loop {
        let before = imports.len();
        let there: BTreeSet<_> = imports.keys().cloned().collect();
        imports.retain(|_, to| to.iter().any(|it| there.contains(it)));
        let imported: BTreeSet<_> = imports.values().flatten().cloned().collect();
        imports.retain(|file, _| imported.contains(file));
        if imports.len() == before {
            return imports.into_keys().collect();
        }
    }
}
