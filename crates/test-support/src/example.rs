//! The executable of an example, for tests that run it as a process.

use escargot::CargoBuild;
use std::{env, path::PathBuf};

/// Builds it with all features, like most of the tests, so that cargo usually finds it built.
pub fn build(name: &str) -> PathBuf {
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
