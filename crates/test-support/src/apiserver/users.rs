//! The users: static tokens, so that the audit log distinguishes the candidates.

use kube_client::Config;
use serde_json::{Value, json};
use std::{fmt::Write as _, fs, io, path::Path};

/// The group to which RBAC grants everything.
pub(super) const CANDIDATES: &str = "candidates";
const FILE: &str = "tokens.csv";

/// `admin` may do anything regardless of RBAC, `candidate-N` anything by RBAC, and `restricted-N` what a test grants
/// it.
fn users() -> impl Iterator<Item = (String, &'static str)> {
    let candidates = (0..32).map(|it| (format!("candidate-{it}"), CANDIDATES));
    let restricted = (0..32).map(|it| (format!("restricted-{it}"), "restricted"));
    std::iter::once(("admin".to_owned(), "system:masters")).chain(candidates).chain(restricted)
}

/// A fixed token is safe here: only this machine reaches the port while the tests run, and the server holds no
/// valuable data.
pub(super) fn token(user: &str) -> String {
    format!("token-of-{user}")
}

/// Writes the file for `--token-auth-file`.
pub(super) fn write_tokens(folder: &Path) -> io::Result<std::path::PathBuf> {
    let mut lines = String::new();
    for (user, group) in users() {
        let _ = writeln!(lines, "{},{user},{user},{group}", token(&user));
    }
    let file = folder.join(FILE);
    fs::write(&file, lines)?;
    Ok(file)
}

/// # Panics
/// When there is no such user: the server would answer every request with 401.
pub(super) fn check(user: &str) {
    assert!(users().any(|(it, _)| it == user), "no such user: {user}");
}

pub(super) fn config(server: &str, ca_der: &[u8], user: &str) -> Config {
    let mut config = Config::new(server.parse().expect("a URL"));
    config.root_cert = Some(vec![ca_der.to_vec()]);
    config.auth_info.token = Some(token(user).into());
    config
}

/// A kubeconfig; JSON is YAML.
pub(super) fn kubeconfig(server: &str, ca: &Path, user: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{ "name": "test", "cluster": { "server": server, "certificate-authority": ca } }],
        "users": [{ "name": user, "user": { "token": token(user) } }],
        "contexts": [{ "name": "test", "context": { "cluster": "test", "user": user, "namespace": "default" } }],
    })
}
