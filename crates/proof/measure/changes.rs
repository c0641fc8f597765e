//! The changes: two tables of defects, and a sample of what cargo-mutants changes.
//!
//! The sample does not depend on the order or the number of the changes: the name of a change, without its line, gives it a
//! rank, and those with the lowest ranks are played. So the same mutants are played after a change of other code.

use crate::source::Source;
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::Range,
    path::Path,
    process::Command,
};

/// What cargo-mutants may change.
const SAMPLED: [&str; 8] = [
    "src/{gate,leadership,request,policy}/**",
    "src/election/machine/**",
    "src/election/program/**",
    "src/runtime/caught_up/**",
    "src/election/work/**",
    "src/election/work.rs",
    "src/election/task.rs",
    "src/election/running.rs",
];
const MACHINE: &str = "src/election/machine";
const SEED: u64 = 75;

/// A change of the code that a test should find.
#[derive(Clone, Debug)]
pub struct Change {
    /// `machine/NAME` or `proof/NAME` for a defect; for a mutant its folder, what is changed, and which of several.
    pub name: String,
    pub edits: Vec<Edit>,
    /// Whether the new text has its own switch.
    pub in_line: bool,
    /// Why no tool may find this defect.
    pub may_be_missed: Option<String>,
}

/// A new text in the place of another one, which is named by its bytes.
#[derive(Clone, Debug)]
pub struct Edit {
    pub file: String,
    pub range: Range<usize>,
    pub text: String,
}

impl Change {
    /// Whether it is of the sample, and no defect.
    pub fn is_mutant(&self) -> bool {
        self.name.starts_with("src")
    }
}

/// Returns all defects, and what is wrong with their texts.
pub fn defects(tree: &Path) -> (Vec<Change>, Vec<String>) {
    let mut faults = Vec::new();
    let mut found = Vec::new();
    let mut files: Vec<_> = fs::read_dir(tree.join("crates/proof/defects")).expect("a folder").collect();
    files.sort_by_key(|it| it.as_ref().expect("a file").path());
    for file in files.into_iter().map(|it| it.expect("a file").path()) {
        if file.extension().is_none_or(|it| it != "defect") {
            continue;
        }
        let name = file.file_stem().and_then(|it| it.to_str()).expect("a name");
        let texts = in_file(&fs::read_to_string(&file).expect("a text"));
        let switch = format!("crate::defect::is_back({name:?})");
        if texts.iter().any(|(.., put)| !put.contains(&switch)) {
            faults.push(format!("{name}: a replacement has no switch of this name"));
        }
        found.push((format!("proof/{name}"), texts, true, None));
    }
    let table = fs::read_to_string(tree.join("crates/election-sim/defects/table.txt")).expect("a table");
    found.extend(table.split("\n\n").filter(|it| !it.starts_with('#')).map(in_table));
    let changes = found.into_iter().map(|(name, texts, in_line, may_be_missed)| {
        let edits = texts.into_iter().filter_map(|(file, find, put)| {
            let text = fs::read_to_string(tree.join(&file)).unwrap_or_default();
            let places: Vec<_> = text.match_indices(&find).map(|(at, _)| at).collect();
            if let [at] = places[..] {
                return Some(Edit { file, range: at..at + find.len(), text: put });
            }
            faults
                .push(format!("{name}: {file} has this text {} times, and not once:\n{find}", places.len()));
            None
        });
        Change { edits: edits.collect(), name: name.clone(), in_line, may_be_missed }
    });
    let changes = changes.collect();
    (changes, faults)
}

type Texts = Vec<(String, String, String)>;

/// A file of `crates/proof/defects`: what it is about; then, for each replacement, the lines `in FILE` and `find`, the text,
/// the line `put`, and the new text.
fn in_file(text: &str) -> Texts {
    let parts = text.split("\nin ").skip(1).map(|part| {
        let (file, rest) = part.split_once("\nfind\n").expect("a line `find`");
        let (find, put) = rest.split_once("\nput\n").expect("a line `put`");
        (file.to_owned(), find.to_owned(), put.trim_end_matches('\n').to_owned())
    });
    parts.collect()
}

/// A block of the machine's table: `NAME: what breaks`, the file, the old text (`-`), the new one (`+`), and if it may be
/// missed, why (`?`).
fn in_table(block: &str) -> (String, Texts, bool, Option<String>) {
    let mut lines = block.trim_end().lines();
    let (name, _) = lines.next().and_then(|it| it.split_once(": ")).expect("a name and what breaks");
    let (mut file, mut old, mut new, mut why) = (String::new(), Vec::new(), Vec::new(), None);
    for line in lines {
        let text = line.get(2..).unwrap_or_default();
        match line.get(..1) {
            Some("-") => old.push(text),
            Some("+") => new.push(text),
            Some("?") => why = Some(text.to_owned()),
            _ => file = format!("{MACHINE}/{line}"),
        }
    }
    (format!("machine/{name}"), vec![(file, old.join("\n"), new.join("\n"))], false, why)
}

#[derive(Deserialize)]
struct Mutant {
    file: String,
    name: String,
    replacement: String,
    span: Span,
}

#[derive(Deserialize)]
struct Span {
    start: Position,
    end: Position,
}

#[derive(Deserialize)]
struct Position {
    line: usize,
    column: usize,
}

/// Returns the sample of `count` mutants: those with the lowest ranks that are not among `left_out`.
pub fn mutants(tree: &Path, count: usize, left_out: &BTreeSet<String>) -> Vec<Change> {
    let mut command = Command::new("cargo");
    command.args(["mutants", "--list", "--json", "--all-features"]).current_dir(tree);
    for files in SAMPLED {
        command.args(["--file", files]);
    }
    let listed = command.output().expect("cargo-mutants");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let mut listed: Vec<Mutant> = serde_json::from_slice(&listed.stdout).expect("a list of mutants");
    listed.sort_by(|a, b| (&a.file, a.span.start.line).cmp(&(&b.file, b.span.start.line)));
    let mut times = BTreeMap::<String, usize>::new();
    let mut sources = BTreeMap::<String, Source>::new();
    let mut ranked = BTreeMap::new();
    for it in listed {
        let folder = it.file.rsplit_once('/').map_or("", |it| it.0);
        let what = it.name.split_once(": ").expect("a place and what is changed there").1;
        let name = format!("{folder}: {what}");
        let which = times.entry(name.clone()).or_default();
        *which += 1;
        let name = format!("{name} #{which}");
        if left_out.contains(&name) {
            continue;
        }
        let source = sources.entry(it.file.clone()).or_insert_with(|| Source::read(tree, &it.file));
        let range = source.at(it.span.start.line, it.span.start.column)
            ..source.at(it.span.end.line, it.span.end.column);
        if source.body_around(&range).is_none() {
            continue;
        }
        let edit = Edit { file: it.file, range, text: it.replacement };
        let change = Change { name: name.clone(), edits: vec![edit], in_line: false, may_be_missed: None };
        ranked.insert((rank(&name), name), change);
    }
    ranked.into_values().take(count).collect()
}

/// The FNV-1a hash of the name, of which each bit is then mixed into all others.
fn rank(name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325 ^ SEED, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    fastrand::Rng::with_seed(hash).u64(..)
}
