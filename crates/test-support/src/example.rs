//! The executable of an example, for tests that run it as a process.

use escargot::CargoBuild;
use std::{
    env::{self, consts::EXE_SUFFIX},
    path::{Path, PathBuf},
};

/// Takes it from the folder in `LEADER_GATE_EXAMPLES`, if there is one. Otherwise builds it with all features, like most
/// of the tests.
///
/// `make test` sets the variable after it has built the tests and these examples. cargo alone would build most
/// dependencies again, since fewer packages ask for fewer of their features.
pub fn build(name: &str) -> PathBuf {
    if let Some(folder) = env::var_os("LEADER_GATE_EXAMPLES") {
        let built = Path::new(&folder).join(format!("{name}{EXE_SUFFIX}"));
        assert!(built.is_file(), "LEADER_GATE_EXAMPLES has no {name}: {}", built.display());
        return built;
    }
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let mut build = CargoBuild::new().example(name).all_features().manifest_path(manifest);
    if !cfg!(debug_assertions) {
        build = build.release();
    }
    // Variables that cargo sets for tests. Build scripts look at them, and would run again.
    let told = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(told)) {
        build = build.env_remove(name);
    }
    build.run().unwrap_or_else(|error| panic!("the example {name} does not build: {error}")).path().to_owned()
}
