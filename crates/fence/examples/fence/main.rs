//! A fence in the API server, for an election: `cargo run --package kube-leader-gate-fence --example fence -- --help`.
//!
//! Everything that it does is in the package; `args` has the options.
#![expect(unreachable_pub, reason = "no other crate uses the modules of an example")]

mod args;

use crate::args::{Args, Task};
use clap::Parser;
use kube_leader_gate::kube_client::{Client, Config, config::AuthInfo};
use kube_leader_gate_fence::{Applied, Fence, Impersonator};
use std::{error::Error, iter, process::ExitCode};

type Failure = Box<dyn Error + Send + Sync>;

/// The status of a difference that `check` has found.
const DIFFERS: u8 = 1;
/// The status after an error. A usage error has it too.
const FAILED: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    // A usage error ends the process here.
    let args = Args::parse();
    match run(&args).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {}", chain(&*error));
            ExitCode::from(FAILED)
        }
    }
}

async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let fence = args.fence()?;
    if args.task == Task::Print {
        print!("{}", fence.to_yaml());
        return Ok(ExitCode::SUCCESS);
    }
    let token = args.replica_token()?;
    let config = Config::infer().await?;
    // Without a user and a password.
    let user = config.cluster_url.authority().and_then(|it| it.as_str().rsplit_once('@'));
    let user = user.map_or_else(String::new, |(user, _)| format!("{user}@"));
    let server = config.cluster_url.to_string().replacen(&user, "", 1);
    let asked = ask(args.task, &fence, config, token).await;
    asked.map_err(|error| format!("{} (the API server is {server})", chain(&*error)).into())
}

async fn ask(task: Task, fence: &Fence, config: Config, token: Option<String>) -> Result<ExitCode, Failure> {
    let replica = match token {
        Some(token) => Some(replica(fence, config.clone(), token).await?),
        None => None,
    };
    let client = Client::try_from(config)?;
    match task {
        Task::Apply => {
            let done = match fence.apply(&client).await? {
                Applied::Created => "created",
                Applied::Changed => "changed",
                _ => "unchanged",
            };
            println!("{}: {done}", fence.name());
            Ok(ExitCode::SUCCESS)
        }
        Task::Remove => {
            let done = if fence.remove(&client).await? { "removed" } else { "was not there" };
            println!("{}: {done}", fence.name());
            Ok(ExitCode::SUCCESS)
        }
        Task::Print | Task::Check => {
            let mut findings = fence.check(&client).await?;
            if let Some(replica) = replica.filter(|_| findings.is_empty()) {
                findings.extend(fence.check_as(&replica).await?);
            }
            for finding in &findings {
                println!("{finding}");
            }
            if findings.is_empty() {
                println!("{}: stands", fence.name());
                return Ok(ExitCode::SUCCESS);
            }
            Ok(ExitCode::from(DIFFERS))
        }
    }
}

/// A client with this token. Refuses a token by which the fence cannot tell which replica asks.
async fn replica(fence: &Fence, mut config: Config, token: String) -> Result<Client, Failure> {
    config.auth_info = AuthInfo::default();
    config.auth_info.token = Some(token.into());
    let client = Client::try_from(config)?;
    match fence.identify(&client).await? {
        Impersonator::Other(user) => {
            Err(format!("the token is of {user:?}, which is not one of the fence's writers").into())
        }
        Impersonator::Replica(identity) => {
            println!("the token is of the replica {identity:?}");
            Ok(client)
        }
        _ => Ok(client),
    }
}

/// An error with its causes, outermost first, a line of each: the next ones of a broken kubeconfig would show the token.
/// The text of some errors has their cause in it already.
fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = iter::successors(error.source(), |&error| error.source());
    let line = |error: &dyn Error| error.to_string().lines().next().unwrap_or_default().to_owned();
    causes.map(&line).fold(
        line(error),
        |text, cause| {
            if text.contains(&cause) { text } else { format!("{text}: {cause}") }
        },
    )
}
