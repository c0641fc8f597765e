//! Takes a program out of `docs/GETTING_STARTED.md`, so that tests run what users copy.

use std::{env, fs, path::Path};

const GUIDE: &str = "../../docs/GETTING_STARTED.md";

fn main() {
    println!("cargo::rerun-if-changed={GUIDE}");
    let guide = fs::read_to_string(GUIDE).expect("the guide");
    let folder = env::var_os("OUT_DIR").expect("cargo says where");
    let section = guide.split("\n## ").find(|it| it.starts_with("4. The other way")).expect("the section");
    let program = section.split_once("\n```rust,no_run\n").and_then(|it| it.1.split_once("\n```"));
    fs::write(Path::new(&folder).join("leading_only.rs"), program.expect("a program").0)
        .expect("a folder to write to");
}
