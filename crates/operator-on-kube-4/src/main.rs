//! One replica, in the cluster and namespace of the current kubeconfig or of the pod, until SIGTERM or Ctrl-C.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::ListParams,
    runtime::{Controller, watcher},
};
use kube_leader_gate::{CancellationToken, Election, kube_client::Config};
use marker::{caught_up::open_when_caught_up, client, operator};
use std::error::Error;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let config = Config::infer().await?; // kube-client 5: the kubeconfig or the service account, as kube 4 reads them
    let election = Election::builder(&config.default_namespace, operator::NAME).build(&config)?;
    let client = client::through_kube_client_5(&election, &config)?;

    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let controller = Controller::new(maps.clone(), watcher::Config::default());
    let store = controller.store();
    let election = open_when_caught_up(election, maps.clone(), ListParams::default(), store);

    let shutdown = CancellationToken::new();
    let work = operator::run(controller, maps, election.candidate(), shutdown.clone().cancelled_owned());
    let told = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        shutdown.cancel();
    };
    election.run_until(told, work).await?.into_output();
    Ok(())
}
