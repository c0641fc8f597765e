//! How long a graceful handover keeps an operator from writing: from SIGTERM to the leader until the next leader's first
//! write, as the audit log of a real kube-apiserver has it. `make -C benches first-write [OBJECTS= ROUNDS= WAYS= TRACE=1]`.
//!
//! Three sets of three replicas of the example operator take turns on the same server: in one all replicas run the gated
//! controller, in one the gate of a new leader also waits for its cache, and in one the leader alone works. In each round the
//! leader receives SIGTERM, and at the same moment a user changes an object.
#![expect(unreachable_pub, reason = "no other crate uses the modules of a bench")]

mod round;
mod set;
mod table;
mod trace;

// The operator's own modules and those that run it as a process, which refer to each other from the root.
#[path = "../../../examples/operator/operator.rs"]
#[expect(dead_code, reason = "the operator runs as a process")]
mod operator;
#[path = "../operators/process.rs"]
#[expect(dead_code, reason = "for tests")]
mod process;
#[path = "../../../examples/operator/user.rs"]
#[expect(dead_code, reason = "for tests")]
mod user;

use crate::{set::Set, table::Table, user::Failure};
use std::{env, process::ExitCode, str::FromStr};
use test_support::apiserver::{self, Lasting, assets};

/// The modes of the operator, and their names in the table.
const WAYS: [(&str, &str); 3] = [
    ("gated", "every replica"),
    ("knowing", "every replica, with `open_when(caught_up)`"),
    ("leading-only", "the leader"),
];

#[tokio::main]
async fn main() -> ExitCode {
    if let Err(missing) = apiserver::is_there() {
        eprintln!(
            "error: this bench needs a real API server, as make -C benches first-write has it: {missing}"
        );
        return ExitCode::FAILURE;
    }
    match play().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn play() -> Result<(), Failure> {
    let (objects, rounds) = (setting("OBJECTS", 1_000)?, setting("ROUNDS", 10)?);
    let trace = env::var("TRACE").is_ok_and(|it| it == "1");
    let own = Lasting::start(assets()).await;
    let cluster = own.cluster();
    let mut sets = Vec::new();
    let asked = env::var("WAYS").unwrap_or_default();
    let is_asked = |mode: &str| asked.is_empty() || asked.split(',').any(|it| it == mode);
    for (mode, name) in WAYS.into_iter().filter(|(mode, _)| is_asked(mode)) {
        sets.push((Set::start(cluster, mode, objects, trace).await?, Table::new(name)));
    }
    for _ in 0..rounds {
        for (set, table) in &mut sets {
            let round = set.round().await?;
            println!("{}", table.add(&round));
            if trace {
                println!("{}", set.trace(&round));
            }
            set.settle(&round).await?;
        }
    }
    println!(
        "\n{objects} objects, SIGTERM to the next leader's first write, median / most of {rounds} rounds:"
    );
    println!("{}", Table::HEAD);
    for (_, table) in &sets {
        println!("{table}");
    }
    Ok(())
}

fn setting<T: FromStr<Err: std::fmt::Display>>(name: &str, default: T) -> Result<T, Failure> {
    match env::var(name) {
        Ok(text) if !text.is_empty() => text.parse().map_err(|it| format!("{name}={text}: {it}").into()),
        _ => Ok(default),
    }
}
