//! The election implementations, and how a candidate of each is started.

use crate::{Failure, apiserver};
use clap::ValueEnum;
use kube_leader_gate::LeaseTiming;
use std::{fmt, path::Path, process::Command, time::Duration};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Elector {
    /// This crate: every candidate writes all the time, and the gate lets the leader's writes through.
    Gate,
    /// This crate, with work that runs while the candidate leads, behind the gate as well.
    LeadingOnly,
    /// client-go, whose writers ask it before each write whether it leads.
    ClientGo,
}

/// The values that are the same for all candidates of a run.
#[derive(Debug)]
pub struct Recipe {
    program: std::path::PathBuf,
    /// The arguments that make this program a candidate.
    arguments: &'static [&'static str],
    lease: String,
    timing: LeaseTiming,
    pace: Pace,
}

/// How much each candidate tries to write.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub writers: usize,
    pub every: Duration,
}

impl Elector {
    /// The error says that client-go's candidate has not been built.
    pub fn recipe(self, lease: String, timing: LeaseTiming, pace: Pace) -> Result<Recipe, Failure> {
        let program = match self {
            Self::Gate | Self::LeadingOnly => std::env::current_exe()?,
            Self::ClientGo => apiserver::program("candidate"),
        };
        let arguments: &[&str] = match self {
            Self::Gate => &["candidate"],
            Self::LeadingOnly => &["candidate", "--leading-only"],
            Self::ClientGo => &[],
        };
        Ok(Recipe { program, arguments, lease, timing, pace })
    }
}

impl fmt::Display for Elector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gate => "gate",
            Self::LeadingOnly => "leading-only",
            Self::ClientGo => "client-go",
        })
    }
}

impl Recipe {
    pub fn command(&self, identity: &str, kubeconfig: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(self.arguments);
        command.arg("--kubeconfig").arg(kubeconfig);
        command.args(["--lease", &self.lease, "--identity", identity]);
        command.args(["--timing", &self.timing.to_string(), "--writers", &self.pace.writers.to_string()]);
        command.args(["--write-every", &format!("{}ms", self.pace.every.as_millis())]);
        command
    }
}
