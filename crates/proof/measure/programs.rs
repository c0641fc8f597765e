//! The programs of the copy: how they are built and run, and what they print.

use crate::tree::{self, cargo, messages};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
};

/// How far the tools go.
const LENGTHS: [(&str, &str); 7] = [
    ("ELECTION_SIM_SEEDS", "1000"),
    ("PROOF_STATES", "20000"),
    ("PROPTEST_CASES", "32"),
    ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true"),
    ("RUST_TEST_THREADS", "6"),
    ("SIM_SEEDS", "1000"),
    ("SIM_SHRINK", "0"),
];

/// A program that cargo has built, and the folder of its package.
#[derive(Clone, Debug)]
pub struct Program {
    file: PathBuf,
    folder: PathBuf,
}

/// Builds all programs. The names are those of their targets.
pub fn built() -> BTreeMap<String, Program> {
    let tests = ["gate", "suite", "cluster", "sim", "loom"].into_iter().flat_map(|it| ["--test", it]);
    let arguments: Vec<_> =
        ["test", "--no-run", "--lib", "--bin", "election-sim"].into_iter().chain(tests).collect();
    let built = cargo(&arguments).output().expect("cargo");
    assert!(built.status.success(), "the copy does not build");
    let program = |message: &Value| {
        let text = |at: &str| message.pointer(at).and_then(|it| it.as_str());
        let (name, file) = (text("/target/name")?, text("/executable")?);
        let folder = Path::new(text("/manifest_path")?).parent()?.to_owned();
        Some((name.to_owned(), Program { file: file.into(), folder }))
    };
    messages(&built.stdout).iter().filter_map(program).collect()
}

/// What became of some tests.
#[derive(Debug, Default)]
pub struct Verdicts {
    pub passed: BTreeSet<String>,
    pub failed: BTreeSet<String>,
    /// Why the program did not come to its end.
    pub ended: Option<&'static str>,
    pub text: String,
}

impl Program {
    /// Runs the program, for so many seconds at most. How far its tools go is the same in each run.
    pub fn run(&self, arguments: &[&str], variables: &[(&str, &str)], seconds: f64) -> Verdicts {
        let limited = "ulimit -v 12000000 && exec nice \"$0\" \"$@\""; // an endless list must not take all memory
        let mut command = Command::new("timeout");
        command
            .args(["--kill-after=2", &format!("{seconds:.1}"), "bash", "-c", limited])
            .arg(&self.file)
            .args(arguments);
        command.current_dir(&self.folder).envs(LENGTHS).envs(variables.iter().copied());
        let output = command.output().expect("a program");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut verdicts = Verdicts::default();
        for line in text.lines().filter_map(|it| it.strip_prefix("test ")) {
            let Some((name, verdict)) = line.rsplit_once(" ... ") else { continue };
            let name = name.trim_end().trim_end_matches(" - should panic").to_owned();
            match verdict.split(' ').next() {
                Some("ok") => verdicts.passed.insert(name),
                Some("FAILED") => verdicts.failed.insert(name),
                _ => false,
            };
        }
        verdicts.ended = match output.status.code() {
            Some(0) => None,
            Some(124 | 137) => Some("hangs"),
            _ if text.contains("\ntest result: ") => None,
            _ => Some("fails"),
        };
        verdicts.text = text;
        verdicts
    }

    /// The names of its tests.
    pub fn tests(&self) -> Vec<String> {
        let listed = self.run(&["--list"], &[], 60.0).text;
        listed.lines().filter_map(|it| it.strip_suffix(": test")).map(str::to_owned).collect()
    }
}

/// The copy and its programs.
#[derive(Debug)]
pub struct Built {
    pub tree: tree::Tree,
    pub programs: BTreeMap<String, Program>,
}

pub fn all() -> Built {
    let tree = tree::made();
    Built { tree, programs: built() }
}
