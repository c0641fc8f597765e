//! What the sidecar costs: direct, through a bare hyper proxy, through the sidecar as a follower, and through `kubectl
//! proxy` if kubectl is there. Reads of 2 kB over plain HTTP, in short turns, so that what else the machine does falls on
//! all. With one connection all runs on one core. `make -C benches sidecar` builds all in the same way. Linux alone.
//! `SIDECAR` names the program, or several to compare, with colons.

mod bare;
mod hops;
mod load;
mod server;

use crate::{
    hops::{Hops, Outcome},
    load::{Load, Watches},
};
use std::{env, process::Command};

const ROUNDS: &str = "200";
const WATCHES: usize = 200;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = env::args().skip(1).filter(|it| !it.starts_with("--")).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["server"] => run(server::serve()),
        ["bare", upstream] => run(bare::serve(upstream.parse()?)),
        ["turns", connections, rounds] => run(turns(connections.parse()?, rounds.parse()?)),
        ["watches"] => run(watches()),
        [] => all(ROUNDS),
        [rounds] => all(rounds),
        _ => Err("usage: hop [ROUNDS]".into()),
    }
}

/// As programs with a runtime of their own do.
fn run(task: impl Future<Output = Outcome<()>>) -> Outcome<()> {
    tokio::runtime::Runtime::new()?.block_on(task)
}

/// Each measurement in processes of its own.
fn all(rounds: &str) -> Outcome<()> {
    let own = env::current_exe()?;
    let succeed = |command: &mut Command| match command.status()? {
        status if status.success() => Ok::<_, hops::Failure>(()),
        status => Err(format!("{command:?}: {status}").into()),
    };
    println!("Requests a second, the median of {rounds} turns, and how many of the bare hop's that is:");
    succeed(Command::new("taskset").args(["--cpu-list", "0"]).arg(&own).args(["turns", "1", rounds]))?;
    succeed(Command::new(&own).args(["turns", "16", rounds]))?;
    succeed(Command::new(&own).args(["turns", "128", rounds]))?;
    succeed(Command::new(&own).arg("watches"))
}

async fn turns(connections: usize, rounds: usize) -> Outcome<()> {
    let hops = Hops::start().await?;
    let mut loads = Vec::new();
    for hop in &hops.ways {
        loads.push(Load::open(hop.addr, connections).await?);
    }
    let mut rates = vec![Vec::new(); loads.len()];
    for round in 0..=rounds {
        for (load, rates) in loads.iter_mut().zip(&mut rates) {
            let rate = load.turn().await?;
            // The first round warms up.
            if round > 0 {
                rates.push(rate);
            }
        }
    }
    let bare = &rates[hops.ways.iter().position(|hop| hop.name == hops::BARE).ok_or("no bare hop")?];
    for (hop, rates) in hops.ways.iter().zip(&rates) {
        let shares = rates.iter().zip(bare).map(|(rate, bare)| rate / bare).collect();
        println!(
            "{connections:>4} connections, {:<14} {:>7.0}  {:.3}",
            hop.name,
            median(rates.clone()),
            median(shares)
        );
    }
    Ok(())
}

async fn watches() -> Outcome<()> {
    let hops = Hops::start().await?;
    println!("{WATCHES} watches, all opened at once, and resident memory then:");
    for hop in &hops.ways {
        let (watches, took) = Watches::open(hop.addr, WATCHES).await?;
        let memory = hop.memory()?;
        let served = watches.served(hops.server).await?;
        println!(
            "{:<14} opened in {:>5} ms, {served} of {WATCHES} deliver, {memory:.1} MB",
            hop.name,
            took.as_millis()
        );
    }
    Ok(())
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
