//! `tests/side_by_side.sh` tries failed tests again, and never one whose failure is a finding. It says what did not run, as
//! `tests/apiserver/assets.sh` tells it.

#![cfg(unix)]

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};
use tempfile::TempDir;

/// What a test program prints, in the form of libtest.
const PROGRAM: &str = r#"
passes() { echo 'test result: ok. 1 passed'; }
fails() { # MESSAGE TEST...
    printf '\nfailures:\n\n---- %s stdout ----\n%s\n\nfailures:\n' "$2" "$1"
    printf '    %s\n' "${@:2}"
    printf '\ntest result: FAILED. 0 passed\n'
    exit 101
}"#;

/// The runner over programs that are scripts, each with its name and what it does at its first, second and third try.
fn run(programs: &[(&str, [&str; 3])]) -> (Output, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, [first, second, later]) in programs {
        let tries = folder.path().join(format!("{name}.tries")).display().to_string();
        let script = format!(
            "{PROGRAM}\necho x >>{tries}\n\
             case $(wc -l <{tries}) in 1) {first} ;; 2) {second} ;; *) {later} ;; esac\n"
        );
        fs::write(folder.path().join(format!("{name}.call")), script).expect("a program");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/side_by_side.sh");
    let mut call = Command::new(script);
    call.arg("programs").args(programs.iter().map(|it| it.0)).env("SIDE_BY_SIDE", folder.path());
    call.env("LEADER_GATE_LEFT_OUT", "Missing: Go");
    (call.output().expect("the runner ends"), folder)
}

fn tries(folder: &TempDir, name: &str) -> usize {
    fs::read_to_string(folder.path().join(format!("{name}.tries"))).map_or(0, |text| text.lines().count())
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

const FAILS: &str = "fails 'panic: not in time' a::slow";
const FAILS_OF_LIBTEST_MIMIC: &str = "(fails 'panic: too late' b::slow) | sed 's/ stdout / /'; exit 101";

#[test]
fn failed_test_that_passes_alone_is_flaky() {
    let (output, folder) = run(&[
        ("first", [FAILS, "passes", "exit 7"]),
        ("second", [FAILS_OF_LIBTEST_MIMIC, FAILS_OF_LIBTEST_MIMIC, "passes"]),
        ("third", ["passes", "exit 7", "exit 7"]),
    ]);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    let last = said.rsplit_once("alone, at try 2").expect("a try").1;
    for expected in ["FLAKY: a::slow of first", "not in time", "FLAKY: b::slow of second", "too late"] {
        assert!(last.contains(expected), "{expected}: {said}");
    }
    assert_eq!(["first", "second", "third"].map(|it| tries(&folder, it)), [2, 3, 1]);
}

#[test]
fn test_that_fails_alone_twice_is_red() {
    let (output, folder) = run(&[("one", [FAILS; 3]), ("other", ["passes"; 3])]);
    let said = text(&output);
    assert!(!output.status.success() && said.contains("==== FAILED: one "), "{said}");
    assert_eq!(tries(&folder, "one"), 3);
}

#[test]
fn finding_is_never_tried_again() {
    for finding in [
        "fails 'panic: SAFETY: two leaders have written' a::judged",
        "fails 'panic: minimal failing input: 7' a::generated",
        "fails 'process abort signal (signal: 6, SIGABRT)' a::one",
        "exit 134",
    ] {
        let (output, folder) = run(&[("judge", [finding, "passes", "passes"])]);
        assert!(!output.status.success(), "{finding}: {}", text(&output));
        assert_eq!(tries(&folder, "judge"), 1, "{finding}");
    }
    let (output, folder) = run(&[("sim", [FAILS, "passes", "passes"])]);
    assert!(!output.status.success(), "{}", text(&output));
    assert_eq!(tries(&folder, "sim"), 1);
    // A finding at the second try ends the tries too.
    let (output, folder) = run(&[("judge", [FAILS, "fails 'panic: SAFETY: late' a::slow", "passes"])]);
    assert!(!output.status.success(), "{}", text(&output));
    assert_eq!(tries(&folder, "judge"), 2);
}

#[test]
fn test_that_does_not_run_alone_has_not_passed() {
    let (output, folder) = run(&[("one", [FAILS, "true", "true"])]);
    assert!(!output.status.success(), "{}", text(&output));
    assert_eq!(tries(&folder, "one"), 3);
}

#[test]
fn more_than_five_flaky_tests_are_red() {
    let (output, folder) = run(&[("five", ["fails 'too slow' a b c d e", "passes", "passes"])]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!((text(&output).matches("FLAKY").count(), tries(&folder, "five")), (5, 6));
    let (output, folder) = run(&[("six", ["fails 'too slow' a b c d e f", "passes", "passes"])]);
    assert!(!output.status.success() && text(&output).contains("6 tests failed"), "{}", text(&output));
    assert_eq!(tries(&folder, "six"), 1);
}

#[test]
fn tests_that_did_not_run_are_counted_at_the_end() {
    let ignored = "echo 'test result: ok. 3 passed; 0 failed; 2 ignored; 0 measured'";
    let (output, _folder) = run(&[("one", [ignored; 3]), ("other", [ignored; 3])]);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.ends_with("==== 4 TESTS DID NOT RUN\nMissing: Go\n"), "{said}");
    assert!(!text(&run(&[("one", ["passes"; 3])]).0).contains("DID NOT RUN"));
}

#[test]
fn target_that_fails_beside_the_tests_is_red() {
    let (output, folder) = run(&[("one", ["passes"; 3]), ("make-no-such-target", ["passes"; 3])]);
    let said = text(&output);
    assert!(!output.status.success() && said.contains("==== FAILED: make-no-such-target "), "{said}");
    assert_eq!(["one", "make-no-such-target"].map(|it| tries(&folder, it)), [1, 0]);
}

#[test]
fn each_program_that_cannot_be_built_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let go = folder.path().join("go");
    fs::write(&go, "#!/bin/sh\necho 'no such version' >&2\nexit 1\n").expect("a program");
    fs::set_permissions(&go, PermissionsExt::from_mode(0o755)).expect("it may run");
    let path = format!("{}:{}", folder.path().display(), env::var("PATH").expect("a path"));
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apiserver/assets.sh");
    let mut call = Command::new(assets);
    call.args(["printenv", "LEADER_GATE_LEFT_OUT"]).env("PATH", path).env("XDG_CACHE_HOME", folder.path());
    for name in ["CI", "KUBEBUILDER_ASSETS", "PROMTOOL", "SERVER_ONLY"] {
        call.env_remove(name);
    }
    let output = call.output().expect("the script ends");
    let named = String::from_utf8_lossy(&output.stdout).into_owned();
    let named: Vec<_> =
        named.lines().map(|line| line.split(". Reason: cannot get Go ").next().unwrap()).collect();
    let programs = "Missing: programs with client-go and Kubernetes' request parser";
    assert_eq!(named, ["Missing: real API server", programs, "Missing: promtool"], "{}", text(&output));
}
