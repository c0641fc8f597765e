//! One candidate: a process that writes while it leads.

use crate::{
    Failure, Options,
    store::{ErrOldToken, Store},
};
use kube_client::Config;
use kube_leader_gate::{Candidate, Election, ErrLeadershipLost, ErrNotLeader, Identity, LeaseTiming};
use std::{
    io::{self, BufRead},
    time::Duration,
};
use tokio::task::block_in_place;

/// Short, so that the show takes seconds. Long enough that no replica loses the lease on a busy machine.
fn timing() -> Result<LeaseTiming, Failure> {
    let (lease, renew) = (Duration::from_secs(8), Duration::from_secs(6));
    Ok(LeaseTiming::new(lease, renew, Duration::from_millis(500))?)
}

/// Contends, and obeys these commands: `lead` waits until this process leads, `write VALUE` writes, and `pause VALUE`
/// does the same with a pause before the statement, until the next line. Prints one line for each step.
pub async fn run(name: &str, server: &str, options: &Options) -> Result<(), Failure> {
    let url = options.store.as_deref().ok_or("a replica needs --store")?;
    let store = Store::open(url, !options.without_token).await?;
    let mut config = Config::new(server.parse()?);
    config.auth_info.token = Some(name.to_owned().into());
    let election = Election::builder("default", "settings")
        .identity(Identity::new(name)?)
        .timing(timing()?)
        .build(&config)?;
    let running = election.start();
    let candidate = running.candidate();
    println!("contends");
    while let Some(command) = line()? {
        match command.split_once(' ') {
            Some(("write", value)) => {
                let outcome = write(candidate, &store, value, false).await;
                println!("{}", describe(outcome));
            }
            Some(("pause", value)) => {
                let outcome = write(candidate, &store, value, true).await;
                println!("{}", describe(outcome));
                // The statement may have been sent although its outcome is unknown. This one comes after it.
                println!("reads {}", store.get().await?);
            }
            _ => {
                let term = candidate.elected().await;
                println!(
                    "leads {}",
                    term.fencing_token().map_or("no token".into(), |token| token.to_string())
                );
            }
        }
    }
    Ok(())
}

/// Writes while this process leads: it takes the token first, and then asks for admission.
async fn write(
    candidate: &Candidate,
    store: &Store,
    value: &str,
    pauses: bool,
) -> Result<Result<(), ErrOldToken>, Failure> {
    let token = candidate.term().and_then(|term| term.fencing_token()).ok_or("no token")?;
    let statement = async {
        if pauses {
            println!("admitted");
            // Here the process is frozen.
            line()?;
        }
        store.set(value, token).await
    };
    Ok(candidate.guard("set the value", statement).await?)
}

fn describe(outcome: Result<Result<(), ErrOldToken>, Failure>) -> String {
    match outcome {
        Ok(Ok(())) => "wrote".into(),
        Ok(Err(ErrOldToken)) => "refused by the database".into(),
        Err(error) if ErrNotLeader::find(&*error).is_some() => "refused by the gate".into(),
        Err(error) if ErrLeadershipLost::find(&*error).is_some() => "cut off, outcome unknown".into(),
        Err(error) => format!("failed: {error}"),
    }
}

/// The next line of standard input. It blocks its thread, as a frozen process does.
fn line() -> io::Result<Option<String>> {
    let next = || io::stdin().lock().lines().next().transpose();
    block_in_place(next)
}
