//! The copy of the tree, in `target/measure/tree`, with all changes in it.

use crate::{
    changes::{self, Change},
    setting,
    source::Source,
    switched::{Switched, switched},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, hash_map::DefaultHasher},
    fmt::Write,
    fs,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const TREE: &str = "target/measure/tree";
const MEASURE: &str = "crates/proof/measure/";
const SWITCH: &str = "crates/proof/measure/switch.rs";
/// The files in which the copy gets the switches, and where `switch.rs` is from there.
const ROOTS: [(&str, &str); 3] = [
    ("src/lib.rs", "../crates/proof/measure/switch.rs"),
    ("crates/early-takeover/src/lib.rs", "../../proof/measure/switch.rs"),
    ("crates/proof/tests/loom/main.rs", "../../measure/switch.rs"),
];
const PACKAGES: [&str; 8] = [
    "--package",
    "kube-leader-gate",
    "--package",
    "kube-leader-gate-early-takeover",
    "--package",
    "proof",
    "--package",
    "election-sim",
];

/// The copy, and what is in it.
#[derive(Debug)]
pub struct Tree {
    pub changes: Vec<Change>,
    /// The switch of the function in which a change is. A change that is not here has a switch of its own name.
    pub sites: BTreeMap<usize, String>,
    /// A hash of all files but the documents and this program.
    pub fingerprint: String,
}

/// Makes the copy, and leaves out mutants that do not compile, so that others take their places. It writes down which
/// these are, so that the next run on the same code builds nothing anew.
pub fn made() -> Tree {
    let from = Path::new(".");
    let (defects, faults) = changes::defects(from);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let with_mutants = |left_out: &BTreeSet<String>| {
        let mut changes = defects.clone();
        changes.extend(changes::mutants(from, setting("CHANGES", 300), left_out));
        let files = put_in(from, &changes);
        let texts = texts(from, &files);
        (changes, files, texts)
    };
    let all = with_mutants(&BTreeSet::new()).2;
    let known = Path::new("target/measure").join(format!("left-out-{}.txt", fingerprint(&all)));
    let mut left_out: BTreeSet<String> =
        fs::read_to_string(&known).unwrap_or_default().lines().map(str::to_owned).collect();
    loop {
        let (changes, files, texts) = with_mutants(&left_out);
        let fingerprint = fingerprint(&texts);
        write(&texts);
        let wrong = do_not_compile(&files);
        eprintln!("{} changes, of which {} do not compile", changes.len(), wrong.len());
        if wrong.is_empty() {
            let names: Vec<_> = left_out.into_iter().collect();
            fs::write(&known, names.join("\n")).expect("a file");
            let functions = files.values().flat_map(|it| &it.functions);
            let sites =
                functions.flat_map(|it| it.1.iter().map(|number| (*number, (it.1[0] + 1).to_string())));
            return Tree { changes, sites: sites.collect(), fingerprint };
        }
        for number in wrong {
            let name = &changes[number].name;
            assert!(
                number >= defects.len(),
                "the defect {name} does not compile, or it stands where no switch can be"
            );
            left_out.insert(name.clone());
        }
    }
}

fn put_in(from: &Path, changes: &[Change]) -> BTreeMap<String, Switched> {
    let files: BTreeSet<_> = changes.iter().flat_map(|it| &it.edits).map(|it| it.file.clone()).collect();
    let roots = ROOTS.iter().map(|it| it.0.to_owned());
    let put = |file: String| {
        let mut it = switched(&Source::read(from, &file), &file, changes);
        if let Some((_, switch)) = ROOTS.iter().find(|it| it.0 == file) {
            let _ = writeln!(it.text, "\n#[path = {switch:?}]\nmod defect;");
        }
        (file, it)
    };
    files.into_iter().chain(roots).map(put).collect()
}

/// The files that git knows, with these in place of those that have their names.
fn texts(from: &Path, changed: &BTreeMap<String, Switched>) -> BTreeMap<String, Vec<u8>> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(from).output().expect("git");
    let listed = String::from_utf8(listed.stdout).expect("names");
    let files = listed.split('\0').filter(|it| from.join(it).is_file()).chain([SWITCH]);
    let text = |file: &str| match changed.get(file) {
        Some(it) => it.text.clone().into_bytes(),
        None => fs::read(from.join(file)).expect("a file"),
    };
    files.map(|file| (file.to_owned(), text(file))).collect()
}

/// A hash of all files but the documents and this program.
fn fingerprint(texts: &BTreeMap<String, Vec<u8>>) -> String {
    let mut hash = DefaultHasher::new();
    let is_code = |file: &str| !file.starts_with("docs/") && (!file.starts_with(MEASURE) || file == SWITCH);
    texts.iter().filter(|it| is_code(it.0)).for_each(|it| it.hash(&mut hash));
    format!("{:016x}", hash.finish())
}

/// Makes the copy like these files. What is the same already stays as it is, so that cargo builds only what has changed.
fn write(texts: &BTreeMap<String, Vec<u8>>) {
    for (file, text) in texts {
        let to = Path::new(TREE).join(file);
        if fs::read(&to).ok().as_ref() != Some(text) {
            fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
            fs::write(&to, text).expect("a file");
        }
    }
    let mut folders = vec![PathBuf::from(TREE)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").map(|it| it.expect("a file").path()) {
            let name =
                entry.strip_prefix(TREE).expect("a part of the tree").to_str().expect("a name").to_owned();
            if entry.is_dir() {
                folders.push(entry);
            } else if !texts.contains_key(&name) && name != "Cargo.lock" {
                fs::remove_file(entry).expect("a file");
            }
        }
    }
}

/// cargo in the copy, with optimised code that still looks for overflows.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.arg(arguments[0]).args(PACKAGES).args(&arguments[1..]);
    command.args(["--all-features", "--profile", "measure", "--message-format", "json"]);
    for setting in ["inherits=\"release\"", "opt-level=1", "debug-assertions=true", "overflow-checks=true"] {
        command.arg("--config").arg(format!("profile.measure.{setting}"));
    }
    command
        .current_dir(TREE)
        .env("CARGO_TARGET_DIR", fs::canonicalize("target").expect("a folder").join("measure/build"));
    command.env("CARGO_INCREMENTAL", "0").env("RUSTFLAGS", "--cap-lints=allow").stderr(Stdio::inherit());
    command
}

/// The messages of cargo.
pub fn messages(output: &[u8]) -> Vec<Value> {
    let lines = output.split(|it| *it == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// The changes in whose lines the compiler finds errors.
fn do_not_compile(files: &BTreeMap<String, Switched>) -> BTreeSet<usize> {
    let checked = cargo(&["check", "--lib"]).stderr(Stdio::null()).output().expect("cargo");
    if checked.status.success() {
        return BTreeSet::new();
    }
    let mut wrong = BTreeSet::new();
    for message in
        messages(&checked.stdout).iter().map(|it| &it["message"]).filter(|it| it["level"] == "error")
    {
        let places: Vec<_> = message["spans"].as_array().into_iter().flatten().collect();
        let in_arms = |primary: bool| {
            let places = places.iter().filter(move |it| it["is_primary"] == primary);
            places.flat_map(|it| changes_at(files, it, true)).collect::<Vec<_>>()
        };
        let in_functions = || places.iter().flat_map(|it| changes_at(files, it, false)).collect::<Vec<_>>();
        let found = [in_arms(true), in_arms(false), in_functions()].into_iter().find(|it| !it.is_empty());
        match found {
            Some(numbers) => wrong.extend(numbers),
            None => eprintln!("{}", message["rendered"].as_str().unwrap_or_default()),
        }
    }
    assert!(!wrong.is_empty(), "the copy does not compile, and no change is the reason");
    wrong
}

/// The changes whose arms, or whose functions, contain the place of a message.
fn changes_at(files: &BTreeMap<String, Switched>, place: &Value, arms: bool) -> Vec<usize> {
    let number = |name: &str| place[name].as_u64().and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
    let Some(file) = place["file_name"].as_str().and_then(|it| files.get(it)) else { return Vec::new() };
    let (first, last) = (number("line_start"), number("line_end"));
    if arms {
        let within = file.arms.iter().filter(|it| it.0.start <= first && last < it.0.end);
        return within.map(|it| it.1).collect();
    }
    let within = file.functions.iter().filter(|it| it.0.start <= first && last < it.0.end);
    within.flat_map(|it| it.1.clone()).collect()
}
