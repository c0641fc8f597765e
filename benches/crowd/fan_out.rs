//! What the watches of one lease cost the API server, without elections.

use crate::{
    Outcome,
    server::{cpu_time, own_cpu_time},
};
use futures_util::StreamExt;
use kube_leader_gate::lease::{LeaseEvent, LeaseName, LeasePool, Lock};
use serde_json::json;
use std::time::{Duration, Instant};
use test_support::apiserver::{Assets, Cluster};
use tokio::{sync::mpsc, task::JoinSet, time::sleep};

const WRITES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(250);
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

pub(crate) async fn measure(assets: &'static Assets, sizes: &[usize]) -> Outcome<()> {
    println!("{WRITES} writes to one lease, one each {PAUSE:?}:");
    println!(
        "| watchers | CPU of the server per write | of the watchers | answer to first event | to the median | to the last (median, most) |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    for watchers in sizes {
        println!("| {watchers} | {} |", row(assets, *watchers).await?);
    }
    Ok(())
}

async fn row(assets: &'static Assets, watchers: usize) -> Outcome<String> {
    let cluster = Cluster::start(assets).await;
    let client = cluster.client("admin");
    let send = |method: &str, path: String, body: serde_json::Value| {
        let request =
            http::Request::builder().method(method).uri(path).header("content-type", "application/json");
        request.body(body.to_string().into_bytes())
    };
    let mut lease: serde_json::Value = client
        .request(send("POST", LEASE.to_owned(), json!({ "metadata": { "name": "crowd" }, "spec": { "holderIdentity": "a", "leaseTransitions": 0 } }))?)
        .await?;
    let (tell, mut told) = mpsc::unbounded_channel();
    let mut watching = JoinSet::new();
    for watcher in 0..watchers {
        let pool = LeasePool::new(&cluster.config(&format!("candidate-{}", watcher % 32)))?;
        let lock = pool.lock(LeaseName::new("default", "crowd")?);
        let tell = tell.clone();
        watching.spawn(async move {
            let Ok(mut events) = lock.watch().await else { return };
            while let Some(Ok(LeaseEvent::Seen(record))) = events.next().await {
                if tell.send((record.transitions(), Instant::now())).is_err() {
                    return;
                }
            }
        });
    }
    for _ in 0..watchers {
        told.recv().await.ok_or("a watch ended")?;
    }
    sleep(Duration::from_secs(3)).await;
    let (server, own) = (cpu_time(&cluster)?, own_cpu_time()?);
    let (mut first, mut middle, mut last) = (Vec::new(), Vec::new(), Vec::new());
    for write in 1..=WRITES {
        lease["spec"]["leaseTransitions"] = write.into();
        lease = client.request(send("PUT", format!("{LEASE}/crowd"), lease.clone())?).await?;
        let answered = Instant::now();
        let mut lags = Vec::with_capacity(watchers);
        while lags.len() < watchers {
            let (seen, at) = told.recv().await.ok_or("a watch ended")?;
            if seen == u64::from(write) {
                lags.push(at.saturating_duration_since(answered));
            }
        }
        lags.sort_unstable();
        first.extend(lags.first());
        middle.extend(lags.get(lags.len() / 2));
        last.extend(lags.last());
        sleep(PAUSE).await;
    }
    let per_write = |now: Duration, before: Duration| now.saturating_sub(before) / WRITES;
    let (server, own) = (per_write(cpu_time(&cluster)?, server), per_write(own_cpu_time()?, own));
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    };
    let most = last.iter().max().copied().unwrap_or_default();
    let (first, middle, last) = (median(&mut first), median(&mut middle), median(&mut last));
    watching.shutdown().await;
    Ok(format!("{server:.1?} | {own:.1?} | {first:.1?} | {middle:.1?} | {last:.1?}, {most:.1?}"))
}
