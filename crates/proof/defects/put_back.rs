//! The defects of this folder: texts of the shipped code, and what takes their place. A defect is behind a switch of its
//! own (`switch.rs`), so all of them are built at once, in a copy of the sources.
//!
//! As a test, this looks whether each text is still there. `defects.sh` runs it as a program, which makes the copy.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

/// The files in which a copy gets the switches.
const ROOTS: [(&str, &str); 3] = [
    ("src/lib.rs", "../crates/proof/defects/switch.rs"),
    ("crates/early-takeover/src/lib.rs", "../../proof/defects/switch.rs"),
    ("crates/proof/tests/loom/main.rs", "../../defects/switch.rs"),
];

/// Puts this text in the place of the other one, in this file.
struct Replacement {
    defect: String,
    file: String,
    find: String,
    put: String,
}

/// Reads the file of a defect: what it is about; then, for each replacement, the lines `in FILE` and `find`, the text, the
/// line `put`, and the new text.
fn read(defect: &str, text: &str) -> Vec<Replacement> {
    let parts = text.split("\nin ").skip(1).map(|part| {
        let (file, rest) = part.split_once("\nfind\n").expect("a line `find`");
        let (find, put) = rest.split_once("\nput\n").expect("a line `put`");
        let put = put.trim_end_matches('\n').to_owned();
        Replacement { defect: defect.to_owned(), file: file.to_owned(), find: find.to_owned(), put }
    });
    parts.collect()
}

/// All replacements of this folder.
fn replacements(folder: &Path) -> Vec<Replacement> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "defect"));
    files.sort();
    let of = |file: &PathBuf| {
        read(file.file_stem().unwrap().to_str().unwrap(), &fs::read_to_string(file).unwrap())
    };
    files.iter().flat_map(of).collect()
}

/// The files of the tree with all defects in them, and what is wrong with the replacements.
fn put_back(tree: &Path, replacements: &[Replacement]) -> (BTreeMap<String, String>, Vec<String>) {
    let (mut files, mut faults) = (BTreeMap::<String, String>::new(), Vec::new());
    let original = |file: &str| {
        fs::read_to_string(tree.join(file)).unwrap_or_else(|error| panic!("there is no {file}: {error}"))
    };
    for Replacement { defect, file, find, put } in replacements {
        let text = files.entry(file.clone()).or_insert_with(|| original(file));
        let found = text.matches(find.as_str()).count();
        if found != 1 {
            faults.push(format!("{defect}: {file} has this text {found} times, and not once:\n{find}"));
        }
        *text = text.replacen(find, put, 1);
    }
    for (root, switch) in ROOTS {
        let text = files.entry(root.to_owned()).or_insert_with(|| original(root));
        let _ = write!(text, "\n#[path = {switch:?}]\nmod defect;\n");
    }
    (files, faults)
}

/// Makes the folder `to` like `from`, with these files in place of those that have their names. What is the same already
/// stays as it is, so that cargo builds only what has changed.
fn copy(from: &Path, to: &Path, at: &Path, changed: &BTreeMap<String, String>) {
    fs::create_dir_all(to.join(at)).unwrap();
    for entry in fs::read_dir(to.join(at)).unwrap().map(Result::unwrap) {
        match entry.path() {
            path if from.join(at).join(entry.file_name()).exists() => drop(path),
            path if path.is_dir() => fs::remove_dir_all(path).unwrap(),
            path => fs::remove_file(path).unwrap(),
        }
    }
    for entry in fs::read_dir(from.join(at)).unwrap().map(Result::unwrap) {
        let (name, at) = (entry.file_name(), at.join(entry.file_name()));
        if entry.path().is_dir() {
            if name != "target" && name != ".git" {
                copy(from, to, &at, changed);
            }
            continue;
        }
        let same = || fs::read(entry.path()).unwrap();
        let text = changed.get(at.to_str().unwrap()).map_or_else(same, |text| text.clone().into_bytes());
        let to = to.join(&at);
        if fs::read(&to).ok().as_ref() != Some(&text) {
            fs::write(to, text).unwrap();
        }
    }
}

fn main() {
    let to = env::args().nth(1).expect("put_back TO");
    let from = Path::new("");
    let (changed, faults) = put_back(from, &replacements(Path::new("crates/proof/defects")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    copy(Path::new("."), Path::new(&to), from, &changed);
}

#[test]
fn each_defect_finds_its_text_once() {
    let here = Path::new("defects");
    let replacements = replacements(here);
    let (_, mut faults) = put_back(Path::new("../.."), &replacements);
    let switched = |defect: &str| {
        let switch = format!("crate::defect::is_back({defect:?})");
        replacements.iter().filter(|it| it.defect == defect).all(|it| it.put.contains(&switch))
    };
    let unswitched = replacements.iter().filter(|it| !switched(&it.defect));
    faults.extend(unswitched.map(|it| format!("{}: a replacement has no switch of this name", it.defect)));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(replacements.len() >= 20, "only {} replacements", replacements.len());
}
