//! The executable of an example, for tests that run it as a process.

use serde_json::Value;
use std::{
    env,
    path::PathBuf,
    process::{Command, Stdio},
};

/// Builds it with all features, like most of the tests, so that cargo usually finds it built.
pub fn build(name: &str) -> PathBuf {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--example", name, "--all-features", "--message-format=json", "--quiet"]);
    build.arg("--manifest-path").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"));
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    // Variables that cargo sets for tests. Build scripts look at them, and would run again.
    let told = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(told)) {
        build.env_remove(name);
    }
    let output = build.stderr(Stdio::inherit()).output().expect("cargo");
    assert!(output.status.success(), "the example {name} does not build");
    let artifact = |line: &[u8]| {
        let message: Value = serde_json::from_slice(line).ok()?;
        let is_it = message["target"]["name"] == name && message["target"]["kind"][0] == "example";
        message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
    };
    output.stdout.split(|byte| *byte == b'\n').find_map(artifact).expect("cargo names the executable")
}
