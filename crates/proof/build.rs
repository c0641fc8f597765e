//! The loom models check the shipped files of `src/leadership`. This copies them, with the atomics and locks of loom in the
//! place of `sync.rs`, and without their unit tests.

use std::{env, fs, path::Path};

const SHIPPED: &str = "../../src/leadership";
const SYNC: &str = "tests/loom/sync.rs";

fn main() {
    for input in ["build.rs", SHIPPED, SYNC] {
        println!("cargo::rerun-if-changed={input}");
    }
    println!("cargo::rustc-check-cfg=cfg(feature, values(\"election\"))");
    println!("cargo::rustc-cfg=feature=\"election\"");
    let to = Path::new(&env::var_os("OUT_DIR").expect("cargo sets it")).join("leadership");
    let _ = fs::remove_dir_all(&to); // it may hold files that have gone
    fs::create_dir_all(&to).expect("a folder of the build");
    for file in fs::read_dir(SHIPPED).expect("the leadership") {
        let file = file.expect("a file").path();
        let name = file.file_name().expect("a name");
        let text = fs::read_to_string(if name == "sync.rs" { Path::new(SYNC) } else { &file }).expect("text");
        let text = text.replace("#[cfg(test)]", "#[cfg(any())]"); // never
        let text = text.replace("\nmod ", "\npub mod ").replace("pub(super)", "pub(crate)"); // so that models see the word
        fs::write(to.join(name), text).expect("a file of the build");
    }
    let module = format!("#[path = r\"{}\"]\npub mod leadership;\n", to.join("mod.rs").display());
    fs::write(to.with_extension("rs"), module).expect("a file of the build");
}
