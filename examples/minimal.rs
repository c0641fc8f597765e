//! Greets each namespace. Every replica watches the namespaces, and only the leader writes.

use axum::Router;
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Config, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{Controller, controller::Action, watcher},
};
use kube_leader_gate::{Election, LeaseTiming, health::Health, runtime::gated, shutdown_signal};
use serde_json::json;
use std::{env, error::Error, net::SocketAddr, sync::Arc, time::Duration};
use tokio::net::TcpListener;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info")); // RUST_LOG
    tracing_subscriber::fmt().with_env_filter(filter).init();
    let config = Config::infer().await?;
    let election = Election::builder(&config.default_namespace, "greeter") // the Lease: one for all replicas
        .timing(LeaseTiming::fast()) // for a trial
        .build(&config)?;
    let client = election.client(&config)?; // the gate judges every write of this client
    let candidate = election.candidate();

    let port: u16 = env::var("PORT").map_or(Ok(8080), |port| port.parse())?;
    let probes = Router::new().fallback_service(Health::new(candidate.clone(), Duration::from_secs(20)));
    // [::] takes IPv4 too. 0.0.0.0 is for a machine without IPv6.
    let any = [SocketAddr::from(([0_u16; 8], port)), SocketAddr::from(([0_u8; 4], port))];
    let listener = TcpListener::bind(&any[..]).await.map_err(|it| format!("PORT {port}: {it}"))?;
    tokio::spawn(async { axum::serve(listener, probes).await }); // /livez, /readyz and /leader

    let namespaces = Controller::new(Api::<Namespace>::all(client.clone()), watcher::Config::default())
        .reconcile_all_on(candidate.gains()) // reconcile every object again when this replica begins to lead
        .graceful_shutdown_on(shutdown_signal()?) // SIGTERM and Ctrl-C
        // A rejected write is left to the leader.
        .run(gated(greet), |_, error, _| retry(error), Arc::new(Api::default_namespaced(client)))
        .for_each(|_| async {});
    election.run_until(shutdown_signal()?, namespaces).await?.into_output(); // then the lease is released
    Ok(())
}

async fn greet(namespace: Arc<Namespace>, greetings: Arc<Api<ConfigMap>>) -> Result<Action, kube::Error> {
    let name = namespace.name_any();
    let greeting = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": format!("greeting-{name}") },
        "data": { "greeting": format!("Hello, {name}!") },
    });
    let apply = PatchParams::apply("greeter").force();
    greetings.patch(&format!("greeting-{name}"), &apply, &Patch::Apply(greeting)).await?;
    println!("greeted {name}");
    Ok(Action::await_change())
}

fn retry(error: &kube::Error) -> Action {
    eprintln!("{error}");
    Action::requeue(Duration::from_secs(5))
}
