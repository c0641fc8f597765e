//! The election implementations, and how a candidate of each is started.

use crate::{Failure, apiserver, timing::on_or_off};
use clap::{ArgAction, Args, ValueEnum};
use kube_leader_gate::{LeaseTiming, lease::LeaseName};
use std::{fmt, path::Path, process::Command, str::FromStr, time::Duration};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Elector {
    /// This crate: every candidate writes all the time, and the gate lets the leader's writes through.
    Gate,
    /// This crate, with work that runs while the candidate leads, behind the gate as well.
    LeadingOnly,
    /// client-go, whose writers ask it before each write whether it leads.
    ClientGo,
}

/// What refuses the writes that have left a candidate too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct Layers {
    /// Let the API server refuse the writes of candidates that do not hold the lease
    #[arg(long)]
    pub fence: bool,
    /// Whether writes carry a limit, after which the API server gives them up: as users get it, or `off`
    #[arg(long, value_name = "on|off", value_parser = on_or_off, action = ArgAction::Set,
        num_args = 0..=1, default_value = "on", default_missing_value = "on")]
    pub request_deadline: bool,
}

/// The values that are the same for all candidates of a run.
#[derive(Debug)]
pub struct Recipe {
    program: std::path::PathBuf,
    /// The arguments that make this program a candidate.
    arguments: &'static [&'static str],
    contest: Contest,
    timing: LeaseTiming,
    pace: Pace,
    layers: Option<Layers>,
}

/// How much each candidate tries to write.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub writers: usize,
    pub every: Duration,
    /// Each writer writes again as soon as it has its answer, to an object of its own. Then `every` is the pause after
    /// a write that failed.
    pub restless: bool,
}

impl Pace {
    /// The names of the objects that these users write.
    pub fn objects(self, name: &str, users: &[String]) -> Vec<String> {
        let of = |user: &String| (0..self.writers).map(|it| object_of(name, user, it)).collect::<Vec<_>>();
        if self.restless { users.iter().flat_map(of).collect() } else { vec![name.to_owned()] }
    }
}

/// The object of one restless writer.
pub fn object_of(name: &str, user: &str, writer: usize) -> String {
    format!("{name}-{user}-{writer}")
}

/// The lease of a run, and the users that contend for it.
#[derive(Clone, Debug)]
pub struct Contest {
    pub lease: LeaseName,
    pub users: Vec<String>,
}

impl Elector {
    /// The error says that client-go's candidate has not been built.
    pub fn recipe(
        self,
        contest: Contest,
        timing: LeaseTiming,
        pace: Pace,
        layers: Layers,
    ) -> Result<Recipe, Failure> {
        let program = match self {
            Self::Gate | Self::LeadingOnly => std::env::current_exe()?,
            Self::ClientGo => apiserver::program("candidate"),
        };
        let arguments: &[&str] = match self {
            Self::Gate => &["candidate"],
            Self::LeadingOnly => &["candidate", "--leading-only"],
            Self::ClientGo => &[],
        };
        // client-go's candidate knows none of these: its fence stands in the API server alone.
        let own = self != Self::ClientGo;
        Ok(Recipe { program, arguments, contest, timing, pace, layers: own.then_some(layers) })
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
        command.args(["--lease", &self.contest.lease.to_string(), "--identity", identity]);
        // A process that begins in the place of another one is the next container of its pod.
        command.env("POD_UID", identity);
        command.args(["--timing", &self.timing.to_string(), "--writers", &self.pace.writers.to_string()]);
        command.args(["--write-every", &format!("{}ms", self.pace.every.as_millis())]);
        if self.pace.restless {
            command.arg("--restless");
        }
        if let Some(layers) = self.layers {
            command.args(["--request-deadline", if layers.request_deadline { "on" } else { "off" }]);
            if layers.fence {
                command.args(["--fence", &self.contest.users.join(",")]);
            }
        }
        command
    }

    pub const fn contest(&self) -> &Contest {
        &self.contest
    }
}

impl fmt::Display for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match (self.fence, self.request_deadline) {
            (false, false) => "neither",
            (true, false) => "fence",
            (false, true) => "request-deadline",
            (true, true) => "both",
        })
    }
}

impl FromStr for Layers {
    type Err = &'static str;

    fn from_str(written: &str) -> Result<Self, Self::Err> {
        let (fence, request_deadline) = match written {
            "neither" => (false, false),
            "fence" => (true, false),
            "request-deadline" => (false, true),
            "both" => (true, true),
            _ => return Err("expected neither, fence, request-deadline or both"),
        };
        Ok(Self { fence, request_deadline })
    }
}
