//! Every lock of the crate conforms, and so does the lock in the documentation.

use super::map_lock::Leases;
use kube_client::Client;
use kube_leader_gate::{
    leadership::Grantor,
    lease::{LeaseName, LeasePool, Lock, ReleaseLock},
    testing::{ApiServer, lock_conformance},
};

const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/operator";

fn name() -> LeaseName {
    LeaseName::new("default", "operator").unwrap()
}

async fn conforms(server: &ApiServer, lock: &impl Lock) {
    let put = async |object| drop(server.put("someone", PATH, object).unwrap());
    let delete = async || server.delete("someone", PATH).unwrap();
    lock_conformance(lock, put, delete).await.unwrap();
    assert!(server.object(PATH).is_none(), "nothing is left behind");
}

fn pool(server: &ApiServer) -> LeasePool {
    let service = server.service();
    LeasePool::over(move || Ok(Client::new(service.clone(), "default"))).unwrap()
}

#[tokio::test(start_paused = true)]
async fn map_lock_of_the_docs_conforms() {
    let (leases, name) = (Leases::default(), name());
    let lock = leases.lock(name.clone());
    lock_conformance(&lock, async |object| leases.put(&name, object), async || leases.delete(&name))
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn kube_lock_conforms() {
    let server = ApiServer::new();
    let lock = pool(&server).lock(name());
    conforms(&server, &lock).await;
}

#[tokio::test(start_paused = true)]
async fn pool_locks_conform() {
    let server = ApiServer::new();
    conforms(&server, &pool(&server).lock(name())).await;
    let sharing = pool(&server).share_watches();
    let other = sharing.lock(LeaseName::new("default", "other").unwrap());
    let _watch = other.watch().await.unwrap();
    conforms(&server, &sharing.lock(name())).await;
}

#[tokio::test(start_paused = true)]
async fn release_lock_conforms() {
    let server = ApiServer::new();
    let lock = pool(&server).lock(name());
    conforms(&server, &ReleaseLock::new(lock, &Grantor::new())).await;
}
