//! What a build and the first run say where something is missing. Each message names the way out, or a page has it.

use super::pages::{read, root};
use std::{
    env, fs,
    net::TcpListener,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Output},
};
use tempfile::TempDir;
use test_support::program::example;

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

fn script(file: &Path, text: &str) {
    fs::write(file, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A folder with these commands of this machine and no others.
fn only(commands: &[&str]) -> TempDir {
    let (folder, path) = (tempfile::tempdir().unwrap(), env::var_os("PATH").expect("a path"));
    for command in commands {
        let found = env::split_paths(&path).map(|it| it.join(command)).find(|it| it.is_file());
        symlink(found.unwrap_or_else(|| panic!("no {command}")), folder.path().join(command)).unwrap();
    }
    folder
}

#[test]
fn make_without_c_compiler_says_what_to_install() {
    let path = only(&["make", "sh"]);
    for target in ["demo", "cluster", "test", "check", "sidecar"] {
        let mut make = Command::new(path.path().join("make"));
        let output = make.arg(target).current_dir(root()).env("PATH", path.path()).output().unwrap();
        assert!(!output.status.success());
        let said = said(&output);
        assert!(said.contains(&format!("make {target}: no C compiler. Install gcc or clang")), "{said}");
    }
}

/// What rustc itself says, for those who build without make.
#[test]
fn page_quotes_rustc_without_linker() {
    let (folder, rustc) =
        (tempfile::tempdir().unwrap(), env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let sysroot = Command::new(rustc).args(["--print", "sysroot"]).output().unwrap();
    let sysroot = String::from_utf8(sysroot.stdout).unwrap();
    let program = folder.path().join("main.rs");
    fs::write(&program, "fn main() {}").unwrap();
    let mut rustc = Command::new(Path::new(sysroot.trim()).join("bin/rustc"));
    let output = rustc.arg(&program).current_dir(folder.path()).env("PATH", folder.path()).output().unwrap();
    let page = read(&root().join("docs/TROUBLESHOOTING.md"));
    let message = "error: linker `cc` not found";
    assert!(said(&output).contains(message), "{}", said(&output));
    assert!(page.contains(message), "{message}");
}

/// cargo asks rustc for its version before it builds anything.
#[test]
fn page_quotes_cargo_with_an_old_rust() {
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("rustc");
    script(
        &old,
        r#"if [ "$*" = -vV ]; then rustc -vV | sed "s/1[.][0-9]*[.][0-9]*/1.88.0/"; else exec rustc "$@"; fi"#,
    );
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["check", "--offline", "--locked", "--package", "kube-leader-gate", "--target-dir"]);
    cargo.arg(folder.path()).current_dir(root()).env("RUSTC", &old);
    let output = cargo.output().unwrap();
    assert!(!output.status.success());
    let said = said(&output);
    assert!(said.contains("kube-leader-gate@0.1.0 requires rustc 1.89"), "{said}");
    let message = "rustc 1.88.0 is not supported by the following package";
    assert!(said.contains(message), "{said}");
    assert!(read(&root().join("docs/TROUBLESHOOTING.md")).contains(message), "{message}");
}

/// `go` is missing, or answers like this. Without the real API server, tests are left out, unless they must not be.
#[test]
fn missing_go_or_network_leaves_tests_out_loudly() {
    let offline = r#"case "$*" in
"env GOVERSION") echo go1.99.0 ;;
"list -mod=readonly -m") ;;
*) echo "dial tcp: lookup proxy: no such host" >&2; exit 1 ;;
esac"#;
    for (go, reason) in [
        (None, "Go is not installed"),
        (Some(offline), "cannot download the Go modules: dial tcp: lookup proxy: no such host"),
    ] {
        let path = only(&["bash", "sed", "dirname", "uname", "cat", "cksum", "cut", "sort", "head", "echo"]);
        if let Some(go) = go {
            script(&path.path().join("go"), go);
        }
        let (bash, cache) = (path.path().join("bash"), tempfile::tempdir().unwrap());
        for (variable, value, code) in [("CI", "false", 0), ("CI", "true", 1), ("SERVER_ONLY", "1", 1)] {
            let mut run = Command::new(&bash);
            run.arg(root().join("tests/apiserver/assets.sh")).args(["echo", "it runs"]);
            run.env_clear().env("PATH", path.path()).env("HOME", cache.path()).env(variable, value);
            let output = run.output().unwrap();
            let said = said(&output);
            assert_eq!(output.status.code(), Some(code), "{variable}={value}: {said}");
            assert_eq!(said.contains("it runs"), code == 0, "{said}");
            for words in ["real API server", reason, "Install Go 1.26", "or set KUBEBUILDER_ASSETS"] {
                assert!(said.contains(words), "{words}: {said}");
            }
        }
    }
}

#[test]
fn program_of_readme_names_missing_kubeconfig_and_used_port() {
    let used = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = used.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let run = || {
        let mut program = Command::new(example("minimal"));
        program.env("KUBECONFIG", &file).env("PORT", &port);
        let output = program.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        said(&output)
    };
    let unread = run();
    assert!(unread.contains(file.to_str().unwrap()) && unread.contains("No such file"), "{unread}");
    fs::write(
        &file,
        r#"{ "current-context": "x", "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
             "clusters": [{ "name": "c", "cluster": { "server": "http://127.0.0.1:1" } }],
             "users": [{ "name": "u", "user": {} }] }"#,
    )
    .unwrap();
    let unbound = run();
    assert!(unbound.contains(&format!("PORT {port}: Address already in use")), "{unbound}");
}
