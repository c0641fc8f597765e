//! `docs/COMPATIBILITY.md` says what the manifests say, and shows the operators that are tested.

use serde_json::Value;
use std::{env, fs, path::Path, process::Command};

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lowest version of a dependency that the manifest allows.
fn bound<'a>(manifest: &'a str, dependency: &str) -> &'a str {
    let line = manifest.lines().find_map(|line| line.strip_prefix(dependency)?.strip_prefix(" = "));
    line.and_then(|line| line.split('"').nth(1)).unwrap_or_else(|| panic!("no {dependency}"))
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap()
}

#[test]
fn guide_names_versions_of_the_manifests() {
    let guide = read("docs/COMPATIBILITY.md");
    let mut rows = Vec::new();
    let own = read("Cargo.toml");
    let (kube, k8s_openapi) = (major(bound(&own, "kube-client")), bound(&own, "k8s-openapi"));
    rows.push(format!(
        "| {}.{} | {kube}.x | {k8s_openapi} | {} or newer |",
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR"),
        env!("CARGO_PKG_RUST_VERSION"),
    ));
    rows.push(format!("| {kube} | {k8s_openapi} | "));
    rows.push(format!("| tokio | {} or newer |", bound(&own, "tokio")));
    rows.push(format!("| http | {} or newer |", bound(&own, "http")));
    for older in ["3", "4"] {
        let manifest = read(&format!("crates/operator-on-kube-{older}/Cargo.toml"));
        assert_eq!(major(bound(&manifest, "kube")), older);
        rows.push(format!("| {older} | {} | ", bound(&manifest, "k8s-openapi")));
    }
    for row in rows {
        assert!(guide.lines().any(|line| line.starts_with(&row)), "no row {row:?}");
    }
}

/// The code without comments, as it may stand in the guide.
fn code(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn guide_shows_the_tested_operator() {
    let guide = code(&read("docs/COMPATIBILITY.md"));
    let operator = ["caught_up", "client", "operator"]
        .map(|file| read(&format!("crates/operator-on-kube-4/src/{file}.rs")));
    let operator = code(&operator.concat());
    let functions = [
        "pub fn through_kube_client_5(",
        "pub fn through_own_kube(",
        "pub fn open_when_caught_up(",
        "pub async fn caught_up(",
        "fn shows(",
        "async fn gated(",
        "pub async fn run(",
    ];
    for shown in functions {
        let function = operator.split("\n\n").find(|it| it.starts_with(shown)).expect("the operator has it");
        assert!(guide.contains(function.trim()), "the guide does not have:\n{function}");
    }
}

/// The build script of k8s-openapi fails before cargo compiles this crate, so the page has the words of that script.
#[test]
fn page_quotes_the_panic_about_a_missing_version() {
    let rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--print", "host-tuple"])
        .output()
        .expect("rustc runs");
    let host = String::from_utf8(rustc.stdout).expect("a platform");
    // cargo has downloaded what other platforms need only by chance.
    let metadata = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--offline",
            "--locked",
            "--format-version",
            "1",
            "--filter-platform",
            host.trim(),
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&metadata.stdout).expect("JSON");
    let own = read("Cargo.toml");
    let version = bound(&own, "k8s-openapi");
    let mut packages = metadata["packages"].as_array().expect("packages").iter();
    let package = packages.find(|it| {
        it["name"] == "k8s-openapi" && it["version"].as_str().is_some_and(|it| it.starts_with(version))
    });
    let manifest = Path::new(package.expect("the package")["manifest_path"].as_str().expect("a path"));
    let script = fs::read_to_string(manifest.with_file_name("build.rs")).expect("its build script");
    let page = read("docs/TROUBLESHOOTING.md");
    let quoted = page.split_once("**A build script panics: `").and_then(|it| it.1.split_once('`'));
    let message = quoted.expect("a message").0;
    assert!(script.contains(message), "{message}");
}
