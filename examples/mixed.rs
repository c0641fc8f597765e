//! A `main.rs` to grow from: two controllers on one election, probes, metrics, SIGTERM, and what an operator writes at
//! its start. `--leader-elect=false` runs one replica alone.
//!
//! - The greeter runs on every replica, and the gate judges its writes. The archive runs on the leader alone.
//! - A replica leads only when its cache is filled, and its gate opens only when the cache shows what the last leader wrote.
//! - Every replica needs the certificate of the webhook. The leader writes it, and each replica waits for it. The
//!   controllers wait for nothing. `examples/operator` shows a controller that has to wait until its own kind is there.

use axum::{Router, routing::get};
use futures_util::StreamExt;
use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    runtime::{Controller, controller::Action, wait::await_condition, watcher},
};
use kube_leader_gate::{
    CancellationToken, Candidate, Election, LeaseTiming,
    health::Health,
    metrics::BUCKETS,
    runtime::{caught_up, gated},
    shutdown_signal,
};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use serde_json::json;
use std::{
    env,
    error::Error,
    future::{pending, ready},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    net::TcpListener,
    time::{sleep, timeout},
};
use tracing_subscriber::EnvFilter;

const CERTIFICATE: &str = "webhook-certificate";
/// How long each controller may take to end after the signal, first the greeter and then the archive.
const GRACE: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info")); // RUST_LOG
    tracing_subscriber::fmt().with_env_filter(filter).init();
    let (for_greeter, signal) = (shutdown_signal()?, shutdown_signal()?); // each hears of SIGTERM and Ctrl-C
    let metrics = recorder()?; // before the election
    let config = Config::infer().await?;
    let cache_is_filled = Arc::new(AtomicBool::new(false));
    let is_filled = cache_is_filled.clone();
    let builder = Election::builder(&config.default_namespace, "mixed")
        .timing(LeaseTiming::fast()) // for a trial
        .grace(GRACE)
        .lead_if(move || if is_filled.load(Relaxed) { Ok(()) } else { Err("the cache is not filled yet") })
        .metrics();
    let is_alone = env::args().any(|it| it == "--leader-elect=false");
    let election = if is_alone { builder.build_alone()? } else { builder.build(&config)? };
    let (client, candidate) = (election.client(&config)?, election.candidate());
    let guests: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let watched = watcher::Config::default().labels("greet=yes");
    let greets = Controller::new(guests.clone(), watched.clone());
    let (seen, stored) = (greets.store(), guests.clone());
    let election = election.open_when(move |_| caught_up(&stored, &watched, &seen, &()));

    let port: u16 = env::var("PORT").map_or(Ok(8080), |port| port.parse())?;
    // [::] takes IPv4 too. 0.0.0.0 is for a machine without IPv6.
    let any = [SocketAddr::from(([0_u16; 8], port)), SocketAddr::from(([0_u8; 4], port))];
    let listener = TcpListener::bind(&any[..]).await.map_err(|it| format!("PORT {port}: {it}"))?;
    println!("probes and metrics: {}", listener.local_addr()?);
    let health = Health::new(candidate.clone(), Duration::from_secs(20));
    tokio::spawn(serve(listener, health, metrics));

    let ended = CancellationToken::new();
    let everywhere = async {
        tokio::join!(webhook(client.clone(), &candidate), async {
            greeter(greets, guests, &candidate, &cache_is_filled, for_greeter).await;
            ended.cancel();
        });
        pending::<()>().await; // the end of the election ends the program
    };
    // The greeter ends at the signal. Then the election ends the archive, and releases the lease.
    let shutdown = async {
        signal.await;
        let _ = timeout(GRACE, ended.cancelled()).await;
    };
    tokio::select! {
        led = election.run_while_leading(shutdown, |over, _term| archive(client.clone(), over)) => led?.into_output(),
        () = everywhere => {}
    }
    Ok(())
}

fn recorder() -> Result<PrometheusHandle, BuildError> {
    let mut exporter = PrometheusBuilder::new();
    for &(name, buckets) in BUCKETS {
        exporter = exporter.set_buckets_for_metric(Matcher::Full(name.to_owned()), buckets)?;
    }
    exporter.install_recorder()
}

/// Serves `/livez`, `/readyz`, `/leader` and `/metrics` until the process ends.
async fn serve(listener: TcpListener, health: Health, metrics: PrometheusHandle) {
    let upkeep = metrics.clone();
    tokio::spawn(async move {
        loop {
            sleep(Duration::from_secs(5)).await;
            upkeep.run_upkeep(); // otherwise samples pile up until a scrape
        }
    });
    let scrape = get(move || ready(metrics.render()));
    let pages = Router::new().route("/metrics", scrape).fallback_service(health);
    if let Err(error) = axum::serve(listener, pages).await {
        eprintln!("cannot serve: {error}");
    }
}

/// On every replica: greets each `ConfigMap` with the label `greet=yes`. The gate leaves that to the leader.
async fn greeter(
    controller: Controller<ConfigMap>,
    guests: Api<ConfigMap>,
    candidate: &Candidate,
    cache_is_filled: &AtomicBool,
    shutdown: impl Future<Output = ()> + Send + Sync + 'static,
) {
    let store = controller.store();
    let notes_filled_cache = async {
        cache_is_filled.store(store.wait_until_ready().await.is_ok(), Relaxed);
    };
    let controller = controller
        .reconcile_all_on(candidate.gains())
        .graceful_shutdown_on(shutdown)
        .run(gated(greet), |_, error, _| retry(error), Arc::new(guests))
        .for_each(|_| async {});
    // In one task: kube wakes only the last task that waits for a store, and the controller waits too.
    tokio::join!(notes_filled_cache, controller);
}

async fn greet(guest: Arc<ConfigMap>, guests: Arc<Api<ConfigMap>>) -> Result<Action, kube::Error> {
    // An apply would make a guest anew that is gone.
    let greeting = Patch::Merge(json!({ "data": { "greeting": format!("Hello, {}!", guest.name_any()) } }));
    guests.patch(&guest.name_any(), &PatchParams::default(), &greeting).await?;
    Ok(Action::await_change())
}

fn retry(error: &kube::Error) -> Action {
    eprintln!("{error}");
    Action::requeue(Duration::from_secs(5))
}

/// On every replica: serves with a certificate that the leader writes, unless an earlier one has.
async fn webhook(client: Client, candidate: &Candidate) {
    let secrets: Api<Secret> = Api::default_namespaced(client);
    let serve = async {
        match await_condition(secrets.clone(), CERTIFICATE, |it: Option<&Secret>| it.is_some()).await {
            Ok(_) => println!("has the certificate"), // and serves
            Err(error) => eprintln!("cannot watch the certificate: {error}"),
        }
    };
    let write = async {
        loop {
            candidate.elected().await; // a follower waits only here
            match secrets.create(&PostParams::default(), &new_certificate()).await {
                Ok(_) => break,
                Err(kube::Error::Api(status)) if status.is_already_exists() => break,
                Err(error) => eprintln!("cannot write the certificate: {error}"),
            }
            sleep(Duration::from_secs(5)).await;
        }
    };
    tokio::join!(serve, write);
}

fn new_certificate() -> Secret {
    Secret {
        metadata: ObjectMeta { name: Some(CERTIFICATE.to_owned()), ..ObjectMeta::default() },
        data: Some([("tls.crt".to_owned(), ByteString(b"yours".to_vec()))].into()),
        ..Secret::default()
    }
}

/// On the leader alone, anew in each term: keeps a copy of each guest.
async fn archive(client: Client, over: CancellationToken) {
    let guests: Api<ConfigMap> = Api::default_namespaced(client);
    Controller::new(guests.clone(), watcher::Config::default().labels("greet=yes"))
        .graceful_shutdown_on(over.cancelled_owned())
        .run(gated(copy), |_, error, _| retry(error), Arc::new(guests))
        .for_each(|_| async {})
        .await;
}

async fn copy(guest: Arc<ConfigMap>, maps: Arc<Api<ConfigMap>>) -> Result<Action, kube::Error> {
    let name = format!("copy-of-{}", guest.name_any());
    let copy =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": guest.data });
    maps.patch(&name, &PatchParams::apply("mixed"), &Patch::Apply(copy)).await?;
    Ok(Action::await_change())
}
