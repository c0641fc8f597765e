//! The command line.

use clap::Parser;
use std::path::PathBuf;

/// Three replicas share one Lease and all try to write all the time: exactly one may.
///
/// Plays an election, a graceful handover, a crash, a freeze, a theft, a deleted lease and an API outage, then judges by
/// what the server has seen. Exit status 1 if a replica wrote without holding the lease, or if an act did not come to its
/// end.
#[derive(Parser)]
#[command(name = "demo")]
pub struct Options {
    /// Line by line, also on a terminal
    #[arg(long)]
    pub plain: bool,

    /// Also write the timeline as a picture
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,

    /// Play against the current kubeconfig instead of the in-process API server. Touches only a lease and a config map that
    /// it makes itself, in the kubeconfig's namespace, and deletes them at the end
    #[arg(long)]
    pub cluster: bool,
}
