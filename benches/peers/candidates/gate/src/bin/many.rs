//! Many elections with kube-leader-gate in one process, for their memory: `many NAMESPACE ELECTIONS WAY`. WAY is
//! `each`, `pool` or `shared`, as in docs/GETTING_STARTED.md. It prints one line once it leads them all.

use common::Failure;
use kube::Config;
use kube_leader_gate::{Election, Identity, lease::LeasePool};
use std::env;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [namespace, elections, way] = &arguments[..] else {
        return Err("usage: KUBECONFIG=FILE many NAMESPACE ELECTIONS each|pool|shared".into());
    };
    let config = Config::infer().await?;
    let pool = match &**way {
        "each" => None,
        "pool" => Some(LeasePool::new(&config)?),
        "shared" => Some(LeasePool::new(&config)?.share_watches()),
        _ => return Err(format!("WAY is {way:?}, allowed: each, pool or shared").into()),
    };
    let mut running = Vec::new();
    for shard in 0..elections.parse::<usize>()? {
        let builder = Election::builder(namespace, format!("shard-{shard}")).identity(Identity::new("many")?);
        let election = match &pool {
            Some(pool) => builder.build_in(pool)?,
            None => builder.build(&config)?,
        };
        running.push(election.start());
    }
    for election in &running {
        election.candidate().elected().await;
    }
    println!("leads");
    std::future::pending().await
}
