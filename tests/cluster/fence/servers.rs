//! Two API servers on one etcd follow the lease, and all writes of the holder pass a fence. With `--nocapture`, how late
//! that is, and what it costs.

use super::ground::{Ground, refused, send};
use crate::support::until;
use http::Method;
use kube_client::{Client, Config};
use kube_leader_gate::Policy;
use serde_json::json;
use std::time::{Duration, Instant};
use test_support::harness::say;

const CHANGES: usize = 30;

/// The middle, the 99th percentile and the largest of these.
fn figures(times: &mut [Duration]) -> String {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    format!("median {:?}, p99 {:?}, max {:?}", at(50), at(99), at(100))
}

fn through(ground: &Ground, server: Option<&Config>, pod: &Config) -> Client {
    let mut config = pod.clone();
    if let Some(server) = server {
        config.cluster_url.clone_from(&server.cluster_url);
    }
    config.default_namespace.clone_from(&ground.namespace);
    Client::try_from(config).expect("a client")
}

/// Each API server reads the lease from its own cache. Writes are dry runs, as fast as the server answers.
pub async fn both_api_servers_follow_the_lease() {
    let ground = Ground::alone().await;
    let sibling = ground.cluster.sibling().await;
    ground.fenced(&ground.fence(&Policy::strict())).await;
    let pods = [ground.config("pod-a").await, ground.config("pod-b").await];
    let other = sibling.config("admin");
    let servers = [None, Some(&other)];
    let clients = servers.map(|server| [0, 1].map(|pod| through(&ground, server, &pods[pod])));
    for [_, b] in &clients {
        until("both servers have the fence", async || refused(&dry_run(&ground, b).await)).await;
    }
    // For each server: until the new holder may write, and until the former one may not.
    let (mut admitted, mut shut) = ([vec![], vec![]], [vec![], vec![]]);
    for change in 0..CHANGES {
        let (new, old) = (change % 2, (change + 1) % 2);
        ground.hold(["pod-a", "pod-b"][new]).await;
        let changed = Instant::now();
        let follow = |server: usize| {
            let (ground, clients) = (&ground, &clients[server]);
            async move {
                let admits = async {
                    while dry_run(ground, &clients[new]).await.is_err() {}
                    changed.elapsed()
                };
                let refuses = async {
                    while !refused(&dry_run(ground, &clients[old]).await) {}
                    changed.elapsed()
                };
                tokio::join!(admits, refuses)
            }
        };
        let both =
            tokio::time::timeout(crate::support::PATIENCE, async { tokio::join!(follow(0), follow(1)) });
        let (one, two) = both.await.expect("both servers follow");
        for (server, (admits, refuses)) in [one, two].into_iter().enumerate() {
            admitted[server].push(admits);
            shut[server].push(refuses);
        }
    }
    for server in 0..2 {
        say(format_args!(
            "server {server}, {CHANGES} changes of the holder, from the answer to the change on:"
        ));
        say(format_args!("  the former holder is refused: {}", figures(&mut shut[server])));
        say(format_args!("  the new holder is admitted:   {}", figures(&mut admitted[server])));
    }
    drop(sibling);
}

async fn dry_run(ground: &Ground, client: &Client) -> Result<serde_json::Value, kube_client::Error> {
    let map = json!({ "metadata": { "generateName": "map-" } });
    send(client, Method::POST, &ground.path("configmaps?dryRun=All"), Some(&map)).await
}

/// The same writes, in turns: with and without the fence, by the holder and by another client, and with the limit that
/// bounded server time adds.
pub async fn fence_and_limit_let_each_write_pass() {
    const ROUNDS: usize = 12;
    const WRITES: usize = 100;
    let ground = Ground::alone().await;
    let fence = ground.fence(&Policy::strict());
    let a = ground.pod("pod-a").await;
    let stranger = ground.pod("pod-b").await;
    ground.hold("pod-a").await;
    let (plain, limited) = ("configmaps", "configmaps?timeout=10s");
    let mut bare = [(&a, plain, vec![]), (&a, limited, vec![])];
    let mut fenced = [(&a, plain, vec![]), (&a, limited, vec![]), (&ground.admin, plain, vec![])];
    for _ in 0..ROUNDS {
        take_turns(&ground, &mut bare, WRITES).await;
        fence.apply(&ground.admin).await.expect("applied");
        until("it is in force", async || refused(&ground.touch(&stranger).await)).await;
        until("the holder may write", async || ground.touch(&a).await.is_ok()).await;
        take_turns(&ground, &mut fenced, WRITES).await;
        fence.remove(&ground.admin).await.expect("removed");
        until("it is gone", async || ground.touch(&stranger).await.is_ok()).await;
    }
    let ([(.., without), (.., limit)], [(.., with), (.., both), (.., of_others)]) = (&mut bare, &mut fenced);
    say(format_args!("{} creations each, one after the other, in {ROUNDS} rounds:", without.len()));
    say(format_args!("  with neither:                   {}", figures(without)));
    say(format_args!("  with a limit:                   {}", figures(limit)));
    say(format_args!("  with the fence, by the holder:  {}", figures(with)));
    say(format_args!("  with both, by the holder:       {}", figures(both)));
    say(format_args!("  with the fence, by another:     {}", figures(of_others)));
}

/// One write of each, again and again.
async fn take_turns(ground: &Ground, turns: &mut [(&Client, &str, Vec<Duration>)], writes: usize) {
    let map = json!({ "metadata": { "generateName": "map-" } });
    for write in 0..writes {
        // Which one is first changes too.
        for turn in 0..turns.len() {
            let (client, path, times) = &mut turns[(turn + write) % turns.len()];
            let sent = Instant::now();
            send(client, Method::POST, &ground.path(path), Some(&map)).await.expect("it passes");
            times.push(sent.elapsed());
        }
    }
}
