//! The executables of examples and of the sidecar, for tests that run them as processes.

use escargot::CargoBuild;
use std::{
    env::{self, consts::EXE_SUFFIX},
    path::{Path, PathBuf},
};

/// A program of the folder `examples`.
///
/// Takes it from the folder in `LEADER_GATE_BUILD`, if there is one. Otherwise builds it with all features, like most
/// of the tests.
///
/// `make test` sets the variable after it has built the tests and these programs. cargo alone would build most
/// dependencies again, since fewer packages ask for fewer of their features.
pub fn example(name: &str) -> PathBuf {
    example_of("examples", name)
}

/// The same of another package of the workspace.
pub fn example_of(package: &str, name: &str) -> PathBuf {
    let place = Path::new("examples").join(name);
    built(&place).unwrap_or_else(|| build(CargoBuild::new().package(package).example(name), name))
}

/// The program of the package with the same name.
///
/// Tests of that package get the one that cargo has built for them, if cargo is 1.94 or newer.
pub fn binary(name: &str) -> PathBuf {
    let own = env::var_os(format!("CARGO_BIN_EXE_{name}")).map(PathBuf::from);
    own.or_else(|| built(Path::new(name)))
        .unwrap_or_else(|| build(CargoBuild::new().package(name).bin(name), name))
}

fn built(place: &Path) -> Option<PathBuf> {
    let folder = PathBuf::from(env::var_os("LEADER_GATE_BUILD")?);
    let built = folder.join(place).with_extension(EXE_SUFFIX.trim_start_matches('.'));
    assert!(built.is_file(), "LEADER_GATE_BUILD has no {}", built.display());
    Some(built)
}

fn build(build: CargoBuild, name: &str) -> PathBuf {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let mut build = build.all_features().manifest_path(manifest);
    if !cfg!(debug_assertions) {
        build = build.release();
    }
    // Variables that cargo sets for tests. Build scripts look at them, and would run again.
    let told = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(told)) {
        build = build.env_remove(name);
    }
    build.run().unwrap_or_else(|error| panic!("{name} does not build: {error}")).path().to_owned()
}
