//! Runs two candidates, freezes the leader between its admission and its statement, and says what its late statement
//! changed.

use crate::{Failure, Options, store::Store};
use kube_leader_gate::testing::ApiServer;
use rustix::process::{Pid, Signal, kill_process};
use std::{env, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

/// Longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A candidate in a process of its own, which ends with this value.
struct Replica {
    name: &'static str,
    process: Child,
    commands: ChildStdin,
    says: Lines<BufReader<ChildStdout>>,
}

/// Plays and prints. Returns whether the late statement changed nothing.
pub async fn play(options: &Options) -> Result<bool, Failure> {
    let folder = tempfile::tempdir()?;
    let file = || folder.path().join("settings.sqlite").to_string_lossy().into_owned();
    let options = &Options { store: Some(options.store.clone().unwrap_or_else(file)), ..options.clone() };
    let store = Store::open(options.store.as_deref().unwrap_or_default(), true).await?;
    let server = ApiServer::new();
    let endpoint = server.serve().await?;

    let mut first = Replica::start("a", &endpoint.uri(), options).await?;
    let token = first.ask("lead").await?;
    println!("a {token}, and {}", first.ask("write 1 by a").await?);
    let mut second = Replica::start("b", &endpoint.uri(), options).await?;

    println!("a is about to write again: {}", first.ask("pause 2 by a, too late").await?);
    first.signal(Signal::STOP)?;
    println!("a freezes");
    println!("b {}, and {}", second.ask("lead").await?, second.ask("write 3 by b").await?);

    first.signal(Signal::CONT)?;
    println!("a wakes, and its statement goes out: {}", first.ask("go on").await?);
    first.next().await?;
    let value = store.get().await?;
    let kept = value == "3 by b";
    println!(
        "the database has {value:?}: a's late statement changed {}",
        if kept { "nothing" } else { "it" }
    );
    Ok(kept)
}

impl Replica {
    async fn start(name: &'static str, server: &str, options: &Options) -> Result<Self, Failure> {
        let mut command = Command::new(env::current_exe()?);
        command.args(["replica", name, server]).arg("--store").args(&options.store);
        if options.without_token {
            command.arg("--without-token");
        }
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn()?;
        let commands = process.stdin.take().ok_or("no standard input")?;
        let says = BufReader::new(process.stdout.take().ok_or("no standard output")?).lines();
        let mut replica = Self { name, process, commands, says };
        replica.next().await?;
        Ok(replica)
    }

    /// Gives a command, and returns the next line that the candidate says.
    async fn ask(&mut self, command: &str) -> Result<String, Failure> {
        self.commands.write_all(format!("{command}\n").as_bytes()).await?;
        self.next().await
    }

    async fn next(&mut self) -> Result<String, Failure> {
        let line = timeout(PATIENCE, self.says.next_line());
        let silent = |_| format!("{} says nothing for {PATIENCE:?}", self.name);
        Ok(line.await.map_err(silent)??.ok_or("a candidate has ended")?)
    }

    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let pid = self.process.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        Ok(kill_process(pid.ok_or("the process has ended")?, signal)?)
    }
}
