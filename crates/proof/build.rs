//! The loom models check the shipped files of `src/leadership`. This copies them and the files that they use, with the atomics
//! and locks of loom in the place of `sync.rs`, and without their unit tests.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

const SHIPPED: &str = "../../src/leadership";
/// What the leadership uses beside itself.
const USED: [&str; 2] = ["one_line", "rate_limited_log"];
const SYNC: &str = "tests/loom/sync.rs";

fn main() {
    for input in ["build.rs", SHIPPED, SYNC] {
        println!("cargo::rerun-if-changed={input}");
    }
    println!("cargo::rustc-check-cfg=cfg(feature, values(\"election\"))");
    println!("cargo::rustc-cfg=feature=\"election\"");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let to = out.join("leadership");
    let _ = fs::remove_dir_all(&to); // it may hold files that have gone
    fs::create_dir_all(&to).expect("a folder of the build");
    for file in fs::read_dir(SHIPPED).expect("the leadership") {
        let file = file.expect("a file").path();
        let name = file.file_name().expect("a name");
        copy(if name == "sync.rs" { Path::new(SYNC) } else { &file }, &to.join(name));
    }
    let mut modules = vec![("leadership", to.join("mod.rs"))];
    for used in USED {
        let (from, to) = (format!("../../src/{used}.rs"), out.join(used).with_extension("rs"));
        println!("cargo::rerun-if-changed={from}");
        copy(Path::new(&from), &to);
        modules.push((used, to));
    }
    let modules =
        modules.iter().map(|(name, path)| format!("#[path = r\"{}\"]\npub mod {name};\n", path.display()));
    let modules: String = modules.collect();
    fs::write(out.join("shipped.rs"), modules).expect("a file of the build");
}

fn copy(from: &Path, to: &Path) {
    let text = fs::read_to_string(from).expect("text");
    let text = text.replace("#[cfg(test)]", "#[cfg(any())]"); // never
    let text = text.replace("\nmod ", "\npub mod ").replace("pub(super)", "pub(crate)"); // so that models see the word
    fs::write(to, text).expect("a file of the build");
}
