//! The command line.

use std::{ffi::OsString, path::PathBuf};

pub const HELP: &str = "\
Three replicas share one Lease and all try to write all the time: exactly one may.
Plays an election, a graceful handover, a crash, a freeze, a theft, a deleted lease and
an API outage, then judges by what the server has seen. Exit status 1 if a replica wrote
without holding the lease, or if an act did not come to its end.

usage: cargo run --example demo -- [options]

  --plain       line by line, also on a terminal
  --svg FILE    also write the timeline as a picture
  --cluster     play against the current kubeconfig instead of the in-process API
                server. Touches only a Lease and a ConfigMap that it makes itself,
                in the kubeconfig's namespace, and deletes them at the end
  -h, --help    this text
";

/// What to do.
pub enum Command {
    Help,
    Play(Options),
}

#[derive(Default)]
pub struct Options {
    pub plain: bool,
    pub cluster: bool,
    pub svg: Option<PathBuf>,
}

/// Reads the arguments, without the program's name. The error is for the user.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    let mut args = args.into_iter();
    let mut options = Options::default();
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("-h" | "--help") => return Ok(Command::Help),
            Some("--plain") => options.plain = true,
            Some("--cluster") => options.cluster = true,
            Some("--svg") => {
                let file = args.next().ok_or("--svg needs a file name")?;
                options.svg = Some(file.into());
            }
            _ => return Err(format!("unknown argument: {}", arg.display())),
        }
    }
    Ok(Command::Play(options))
}
