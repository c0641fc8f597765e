//! Instructions of this program below callgrind.

use std::{
    env, io,
    process::{Command, Output},
};

/// Two runs differ by so many requests. All sixteen reads occur equally often in both.
const FEW: u32 = 160;
const MANY: u32 = 1_760;

/// Whether valgrind is there.
///
/// # Errors
/// If it cannot be started.
pub(crate) fn valgrind() -> io::Result<()> {
    Command::new("valgrind").arg("--version").output().map(drop)
}

/// The instructions of one request of this subject, without what the program costs.
///
/// # Errors
/// What prevents the count.
pub(crate) fn instructions(subject: &str) -> Result<i64, String> {
    Ok((below_callgrind(subject, MANY)? - below_callgrind(subject, FEW)?) / i64::from(MANY - FEW))
}

fn below_callgrind(subject: &str, requests: u32) -> Result<i64, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([subject, &requests.to_string()])
        .output()
        .map_err(|error| format!("valgrind cannot be started: {error}"))?;
    collected(&output).ok_or_else(|| {
        format!("valgrind ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr))
    })
}

/// Callgrind ends with `==1234== Collected : 5678`.
fn collected(output: &Output) -> Option<i64> {
    let said = str::from_utf8(&output.stderr).ok().filter(|_| output.status.success())?;
    said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}
