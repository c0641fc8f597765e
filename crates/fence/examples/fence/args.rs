//! The command line.

use clap::{
    Parser, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use kube_leader_gate::{ErrInvalid, Policy, lease::LeaseName, policy::Preset};
use kube_leader_gate_fence::{Fence, Writers};
use std::{fs, path::PathBuf};

/// A fence for an election: the API server itself refuses the writes of each replica that does not hold the Lease.
///
/// It acts in the cluster of the current kubeconfig, or of the pod.
///
/// Exit status: 0 if it is done, 1 if `check` has found a difference, 2 after an error.
#[derive(Parser)]
#[command(name = "fence")]
pub struct Args {
    /// What to do
    #[arg(value_enum)]
    pub task: Task,

    /// The Lease of the election
    #[arg(long, value_name = "NS/NAME")]
    lease: LeaseName,

    /// Whose writes the fence judges: service-account:NS/NAME (pods, whose identities are their names), users:NAME,NAME
    /// or group:NAME (users, whose names are their identities)
    #[arg(long, value_name = "WHO")]
    writers: Writers,

    /// What stands before the identity in the name of a user
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,

    /// What followers may send, as in the election's policy; may be repeated
    #[arg(long, value_name = "PRESET", value_parser = preset())]
    allow: Vec<Preset>,

    /// Check before anything else that the API server can tell from this token which replica asks
    #[arg(long, value_name = "FILE")]
    replica_token: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Task {
    /// Print the policy and its binding as YAML
    Print,
    /// Make the fence stand
    Apply,
    /// Name each difference between the fence and what the cluster has
    Check,
    /// Remove the fence
    Remove,
}

impl Args {
    pub fn fence(&self) -> Result<Fence, ErrInvalid> {
        let writers = self.writers.clone();
        let writers = match &self.prefix {
            Some(prefix) => writers.prefix(prefix)?,
            None => writers,
        };
        let policy = self.allow.iter().fold(Policy::strict(), |policy, preset| policy.allow(*preset));
        Fence::new(&self.lease, &writers, &policy)
    }

    /// The token of a replica. The error names its file.
    pub fn replica_token(&self) -> Result<Option<String>, String> {
        let Some(file) = &self.replica_token else { return Ok(None) };
        let named = format!("the token file \"{}\"", file.display());
        let text = fs::read_to_string(file).map_err(|error| format!("cannot read {named}: {error}"))?;
        match text.trim() {
            // With it, the API server would answer as to a user that has no name.
            "" => Err(format!("{named} is empty")),
            token => Ok(Some(token.to_owned())),
        }
    }
}

/// The presets of the crate's policy, by name.
fn preset() -> impl TypedValueParser<Value = Preset> {
    let names = Preset::ALL.iter().map(|preset| preset.as_str());
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Preset>())
}
