//! Where the programs are.

use std::{
    env,
    io::{self, Write},
    path::PathBuf,
    sync::OnceLock,
};

const ASSETS: &str = "KUBEBUILDER_ASSETS";
const PROGRAMS: &str = "LEADER_GATE_PROGRAMS";

/// The folder with etcd, kube-apiserver and kubectl.
#[derive(Debug)]
pub struct Assets(PathBuf);

/// None, after one loud line, where there is no API server to be had. With `CI=true` that is a panic.
pub fn assets() -> Option<&'static Assets> {
    static ASSETS_FOUND: OnceLock<Option<Assets>> = OnceLock::new();
    ASSETS_FOUND.get_or_init(|| folder(ASSETS, "tests against a real kube-apiserver").map(Assets)).as_ref()
}

impl Assets {
    pub fn binary(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// One of this repository's own Go programs. None, after one loud line, where they could not be built; with `CI=true`
/// that is a panic.
pub fn program(name: &str) -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOUND
        .get_or_init(|| folder(PROGRAMS, "tests beside client-go and Kubernetes' own reading of requests"))
        .as_ref()
        .map(|it| it.join(name))
}

fn folder(variable: &str, what: &str) -> Option<PathBuf> {
    if let Some(folder) = env::var_os(variable).filter(|it| !it.is_empty()) {
        return Some(folder.into());
    }
    let how = format!(
        "{variable} is not set: run `make test`, or `tests/apiserver/assets.sh cargo test`, with Go installed"
    );
    assert!(env::var_os("CI").is_none_or(|it| it != "true"), "{what} are required with CI=true: {how}");
    // Past the capture of the test's output.
    let _ = writeln!(io::stderr(), "\n=== LEFT OUT: {what}. {how} ===");
    None
}
