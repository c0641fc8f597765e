//! Unusual ways to name an API server and its credentials.

use crate::support::write;
use axum::Router;
use kube_leader_gate::{Election, Identity, LeaseTiming, testing::ApiServer};
use std::{convert::Infallible, time::Duration};
use test_support::wait::within;
use tokio::{net::TcpListener, task::JoinSet};
use tower::util::MapErr;

const PATIENCE: Duration = Duration::from_secs(60);

/// As Rancher names its clusters. The gate judges what stands behind that path.
#[tokio::test]
async fn server_url_with_a_path_serves_lease_and_writes() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let service = MapErr::new(server.service().user("a"), |error| -> Infallible { panic!("{error}") });
    let behind = Router::new().nest_service("/k8s/clusters/c-1", service);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async { axum::serve(listener, behind).await });
    for slash in ["", "/"] {
        let mut config = endpoint.config("a");
        config.cluster_url = format!("http://{addr}/k8s/clusters/c-1{slash}").parse().unwrap();
        let election = Election::builder("default", format!("lease{}", slash.len()))
            .identity(Identity::new("a").unwrap())
            .timing(LeaseTiming::fast())
            .build(&config)
            .unwrap();
        let client = election.client(&config).unwrap();
        let running = election.start();
        within(PATIENCE, "it leads", running.candidate().elected()).await;
        write(&client).await.unwrap();
        running.stop().await;
    }
}
