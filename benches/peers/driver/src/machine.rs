//! The machine and the versions of a run, in words.

use crate::{peer::Peer, record::Conditions};
use std::{fs, process::Command, thread};

const SERVER_MOD: &str = include_str!("../../../../tests/apiserver/go.mod");

pub(crate) fn conditions(command: &str) -> Conditions {
    let first = |path: &str, start: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|it| it.starts_with(start)).unwrap_or_default();
        line.trim_start_matches(start).trim_start_matches(['\t', ' ', ':']).trim().to_owned()
    };
    let kilobytes: f64 =
        first("/proc/meminfo", "MemTotal:").trim_end_matches(" kB").trim().parse().unwrap_or_default();
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let kernel = first("/proc/sys/kernel/osrelease", "");
    let kernel = kernel.split('-').next().unwrap_or_default();
    let load = first("/proc/loadavg", "");
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(", ");
    let server = SERVER_MOD.split_once("k8s.io/kubernetes v").map_or("?", |(_, rest)| rest);
    let server = server.split(['\n', ' ']).next().unwrap_or("?");
    let versions = Peer::ALL.map(|it| format!("{it} {}", it.version())).join(", ");
    let machine = format!(
        "{}; {cores} cores of {}, {:.0} GB, Linux {kernel}; load at the start {load}; kube-apiserver {server} and etcd on the \
         same machine, over TLS; {}, {}; {versions}.",
        jiff::Zoned::now().strftime("%Y-%m-%d"),
        first("/proc/cpuinfo", "model name"),
        kilobytes / 1e6,
        version("rustc", &["--version"], 2),
        version("go", &["version"], 3),
    );
    Conditions { machine, command: command.to_owned() }
}

/// The first words of what a program says about itself.
fn version(program: &str, arguments: &[&str], words: usize) -> String {
    let output = Command::new(program).args(arguments).output().map(|it| it.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&output).into_owned();
    text.split_whitespace().take(words).collect::<Vec<_>>().join(" ")
}
