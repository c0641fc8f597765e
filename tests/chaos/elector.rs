//! Whose election it is, and how a candidate of it is started.

use crate::{Failure, apiserver, timing::Timing};
use clap::ValueEnum;
use std::{fmt, path::Path, process::Command, time::Duration};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Elector {
    Gate,
    ClientGo,
}

/// What is the same for all candidates of a run.
#[derive(Debug)]
pub struct Recipe {
    program: std::path::PathBuf,
    hidden_command: Option<&'static str>,
    lease: String,
    timing: Timing,
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
    pub fn recipe(self, lease: String, timing: Timing, pace: Pace) -> Result<Recipe, Failure> {
        let (program, hidden_command) = match self {
            Self::Gate => (std::env::current_exe()?, Some("candidate")),
            Self::ClientGo => {
                let program = apiserver::program("candidate");
                (program.ok_or("client-go's candidate is not there: see above")?, None)
            }
        };
        Ok(Recipe { program, hidden_command, lease, timing, pace })
    }
}

impl fmt::Display for Elector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gate => "gate",
            Self::ClientGo => "client-go",
        })
    }
}

impl Recipe {
    pub fn command(&self, identity: &str, kubeconfig: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(self.hidden_command);
        command.arg("--kubeconfig").arg(kubeconfig);
        command.args(["--lease", &self.lease, "--identity", identity]);
        command.args(["--timing", &self.timing.to_string(), "--writers", &self.pace.writers.to_string()]);
        command.args(["--write-every", &format!("{}ms", self.pace.every.as_millis())]);
        command
    }
}
