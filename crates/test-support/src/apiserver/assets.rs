//! Where the programs are.

use std::{env, path::PathBuf, sync::OnceLock};

const ASSETS: &str = "KUBEBUILDER_ASSETS";
const PROGRAMS: &str = "LEADER_GATE_PROGRAMS";
const PROMTOOL: &str = "PROMTOOL";

const SERVER: &str = "real kube-apiserver";
const GO: &str = "Go programs of tests/apiserver";
const RULES: &str = "promtool of Prometheus";

/// The folder with etcd, kube-apiserver and kubectl.
#[derive(Debug)]
pub struct Assets(PathBuf);

/// Says what to do when there is no API server: a [`Need`](crate::harness::Need).
pub fn is_there() -> Result<(), String> {
    path(ASSETS, SERVER).map(drop)
}

/// The same for this repository's own Go programs.
pub fn programs_are_there() -> Result<(), String> {
    path(PROGRAMS, GO).map(drop)
}

/// The same for promtool.
pub fn promtool_is_there() -> Result<(), String> {
    path(PROMTOOL, RULES).map(drop)
}

/// The folder of the API server. Panics when [there is none](is_there).
pub fn assets() -> &'static Assets {
    static FOUND: OnceLock<Assets> = OnceLock::new();
    FOUND.get_or_init(|| Assets(path(ASSETS, SERVER).unwrap_or_else(|missing| panic!("{missing}"))))
}

impl Assets {
    /// The program of this name.
    pub fn binary(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// One of this repository's own Go programs. Panics when [there are none](programs_are_there).
pub fn program(name: &str) -> PathBuf {
    path(PROGRAMS, GO).unwrap_or_else(|missing| panic!("{missing}")).join(name)
}

/// Prometheus' promtool. Panics when [there is none](promtool_is_there).
pub fn promtool() -> PathBuf {
    path(PROMTOOL, RULES).unwrap_or_else(|missing| panic!("{missing}"))
}

fn path(variable: &str, what: &str) -> Result<PathBuf, String> {
    let path = env::var_os(variable).filter(|it| !it.is_empty()).map(PathBuf::from);
    path.ok_or_else(|| {
        format!("no {what}: run `make test`, or `tests/apiserver/assets.sh cargo test`, with Go installed")
    })
}
