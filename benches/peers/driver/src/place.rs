//! Where things are in the repository.

use std::path::{Path, PathBuf};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// This workspace. cargo finds its configuration only from here.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What is built, and the results of the last runs.
pub(crate) fn output() -> PathBuf {
    root().join("target/peers")
}

/// The optimised program of this name.
pub(crate) fn program(name: &str) -> PathBuf {
    output().join("release").join(name)
}

/// The Go program of this name.
pub(crate) fn go_program(name: &str) -> PathBuf {
    output().join("go").join(name)
}
