//! Clean builds of a small program, with one elector at a time.

use super::results::Results;
use crate::{
    failure::Failure,
    place,
    record::{Cost, Table},
};
use std::{collections::BTreeSet, fs, process::Command, time::Instant};

struct Variant {
    what: &'static str,
    package: &'static str,
    kube: f64,
    features: &'static str,
}

const VARIANTS: [Variant; 7] = [
    variant("kube 5 alone", "hello-kube-5", 5.0, ""),
    variant("with kube-leader-gate, the gate alone", "hello-kube-5", 5.0, "gate"),
    variant("with kube-leader-gate, gate and election (the default)", "hello-kube-5", 5.0, "election"),
    variant("with kube-leader-gate, all features but `test-util`", "hello-kube-5", 5.0, "all"),
    variant("with kube-lease-manager", "hello-kube-5", 5.0, "kube-lease-manager"),
    variant("kube 1.1 alone", "hello-kube-1", 1.1, ""),
    variant("with kubert's lease", "hello-kube-1", 1.1, "kubert"),
];

const fn variant(what: &'static str, package: &'static str, kube: f64, features: &'static str) -> Variant {
    Variant { what, package, kube, features }
}

/// How many have failed.
pub(super) fn measure(results: &Results) -> Result<u32, Failure> {
    run(Command::new("cargo").args(["fetch", "--locked"]))?;
    let mut failures = 0;
    for variant in VARIANTS {
        let outcome = variant.measure();
        let (values, failure) = match outcome {
            Ok([crates, seconds, kilobytes]) => {
                let bare = f64::from(u8::from(variant.features.is_empty()));
                let values = [
                    ("bare", bare),
                    ("kube", variant.kube),
                    ("crates", crates),
                    ("seconds", seconds),
                    ("kilobytes", kilobytes),
                ];
                (values.map(|(name, value)| (name.to_owned(), value)).into(), None)
            }
            Err(error) => ([].into(), Some(error.to_string())),
        };
        failures +=
            results.keep(&Cost { table: Table::Build, what: variant.what.to_owned(), values, failure })?;
    }
    Ok(failures)
}

impl Variant {
    fn measure(&self) -> Result<[f64; 3], Failure> {
        let features = ["--package", self.package, "--features", self.features];
        let tree = run(Command::new("cargo")
            .args(["tree", "--locked", "--edges", "normal,build", "--prefix", "none", "--no-dedupe"])
            .args(["--format", "{p}"])
            .args(features))?;
        // The program itself is none of them.
        let crates =
            tree.lines().map(|it| it.trim_end_matches(" (proc-macro)")).collect::<BTreeSet<_>>().len() - 1;
        let folder = place::output().join("clean");
        let _ = fs::remove_dir_all(&folder); // it may not be there
        let began = Instant::now();
        run(Command::new("cargo")
            .args(["build", "--locked", "--release", "--quiet", "--target-dir"])
            .arg(&folder)
            .args(features))?;
        let seconds = began.elapsed().as_secs_f64();
        let bytes = fs::metadata(folder.join("release").join(self.package))?.len();
        fs::remove_dir_all(&folder)?;
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        Ok([crates as f64, seconds, bytes as f64 / 1000.0])
    }
}

/// Runs a command in this workspace, and returns what it prints.
fn run(command: &mut Command) -> Result<String, Failure> {
    let output = command.current_dir(place::workspace()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    let error = String::from_utf8_lossy(&output.stderr);
    let last: Vec<_> = error.lines().rev().take(3).collect();
    Err(format!("{command:?}: {}: {}", output.status, last.into_iter().rev().collect::<Vec<_>>().join(" / "))
        .into())
}
