//! The loom models have the files of `src/leadership` among their own: built with loom's atomics, and with what they have
//! for an election.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(leader_gate_loom)");
    println!("cargo::rustc-cfg=leader_gate_loom");
    println!("cargo::rustc-check-cfg=cfg(feature, values(\"election\"))");
    println!("cargo::rustc-cfg=feature=\"election\"");
    println!("cargo::rerun-if-changed=build.rs");
}
