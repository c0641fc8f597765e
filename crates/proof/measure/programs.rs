//! The programs of the copy: how they are built and run, and what they print.

use crate::tree::{self, cargo, messages};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
};

/// A program that cargo has built, and the folder of its package.
#[derive(Clone, Debug)]
pub struct Program {
    file: PathBuf,
    folder: PathBuf,
}

/// Builds all programs. The names are those of their targets.
pub fn built() -> BTreeMap<String, Program> {
    let tests = ["test", "--no-run", "--lib", "--test", "gate", "--test", "suite", "--test", "cluster"];
    let tests = [&tests[..], &["--test", "sim", "--test", "loom"]].concat();
    let mut programs = BTreeMap::new();
    for arguments in [&tests[..], &["build", "--bin", "election-sim"]] {
        let built = cargo(arguments).output().expect("cargo");
        assert!(built.status.success(), "the copy does not build");
        for message in messages(&built.stdout) {
            let text = |at: &str| message.pointer(at).and_then(|it| it.as_str());
            let (Some(name), Some(file), Some(manifest)) =
                (text("/target/name"), text("/executable"), text("/manifest_path"))
            else {
                continue;
            };
            let folder = Path::new(manifest).parent().expect("a folder").to_owned();
            programs.insert(name.to_owned(), Program { file: file.into(), folder });
        }
    }
    programs
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
    /// Runs the program, for so many seconds at most.
    pub fn run(&self, arguments: &[&str], variables: &[(&str, &str)], seconds: f64) -> Verdicts {
        let limited = "ulimit -v 12000000 && exec nice \"$0\" \"$@\""; // an endless list must not take all memory
        let mut command = Command::new("timeout");
        command
            .args(["--kill-after=2", &format!("{seconds:.1}"), "bash", "-c", limited])
            .arg(&self.file)
            .args(arguments);
        command
            .current_dir(&self.folder)
            .env("PROPTEST_CASES", "32")
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
        command.envs(variables.iter().copied());
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
