//! The command line.

use crate::Failure;
use std::{ffi::OsString, path::PathBuf};

const HELP: &str = "\
Three replicas share one Lease and all try to write all the time: exactly one may.

Plays an election, a graceful handover, a crash, a freeze, a theft, a deleted Lease and an API outage, then judges by what
the API server has seen. The exit status is 1 if a replica wrote without holding the Lease, or if an act did not come to
its end.

Usage: demo [--plain] [--svg FILE]

  --plain     Print line by line, also on a terminal
  --svg FILE  Also write the timeline as a picture
  --help      Print this
";

/// What the user has asked for.
#[derive(Default)]
pub struct Options {
    /// Line by line, also on a terminal.
    pub plain: bool,
    /// Where to write the timeline as a picture.
    pub svg: Option<PathBuf>,
}

impl Options {
    /// Reads the options. `None` if the help was asked for and is printed.
    pub fn read(mut args: impl Iterator<Item = OsString>) -> Result<Option<Self>, Failure> {
        let mut options = Self::default();
        while let Some(arg) = args.next() {
            match arg.to_str() {
                Some("--plain") => options.plain = true,
                Some("--svg") => options.svg = Some(args.next().ok_or("--svg needs a file")?.into()),
                Some("--help" | "-h") => {
                    print!("{HELP}");
                    return Ok(None);
                }
                _ => return Err(format!("unknown option {}; see --help", arg.display()).into()),
            }
        }
        Ok(Some(options))
    }
}
