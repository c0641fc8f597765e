//! The memory of one and of many elections of this crate in one process.

use super::{process::resident, results::Results};
use crate::{
    failure::Failure,
    ledger::ADMIN,
    place,
    record::{Cost, Table},
    site::Site,
};
use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};
use test_support::apiserver::Guarded;
use tokio::{
    task::spawn_blocking,
    time::{sleep, timeout},
};

/// Until it leads them all.
const PATIENCE: Duration = Duration::from_secs(300);
/// After that, until the memory of the start has been used again or not.
const CALM: Duration = Duration::from_secs(30);

/// How many have failed.
pub(super) async fn measure(site: &Arc<Site>, elections: u32, results: &Results) -> Result<u32, Failure> {
    let ways = [
        (1, "each", "1"),
        (elections, "each", "each with its own connections"),
        (elections, "pool", "on a `LeasePool`"),
        (elections, "shared", "on a `LeasePool` with `share_watches`"),
    ];
    let mut failures = 0;
    for (elections, way, words) in ways {
        let what = if elections == 1 { words.to_owned() } else { format!("{elections}, {words}") };
        let (values, failure) = match run(site, elections, way).await {
            Ok(kilobytes) => (
                [("elections".to_owned(), f64::from(elections)), ("kilobytes".to_owned(), kilobytes)].into(),
                None,
            ),
            Err(error) => ([].into(), Some(error.to_string())),
        };
        failures += results.keep(&Cost { table: Table::Many, what, values, failure })?;
    }
    Ok(failures)
}

async fn run(site: &Arc<Site>, elections: u32, way: &str) -> Result<f64, Failure> {
    let namespace = site.cluster.namespace().await; // its requests are not kept
    let mut command = Command::new(place::program("many"));
    command.env("KUBECONFIG", site.cluster.kubeconfig(ADMIN, &site.cluster.url()));
    command.args([&namespace, &elections.to_string(), way]);
    let mut process = Guarded::spawn_with(&command, Stdio::piped(), Stdio::inherit())?;
    let output = process.stdout().ok_or("a process without an output")?;
    let first = spawn_blocking(move || BufReader::new(output).lines().next());
    let line = timeout(PATIENCE, first)
        .await
        .map_err(|_| format!("it does not lead all of them after {PATIENCE:?}"))?;
    line?.ok_or("it ended before it led them all")??;
    sleep(CALM).await;
    resident(process.pid().as_raw_nonzero().get())
}
