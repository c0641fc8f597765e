//! Which user a real kube-apiserver sees in a request through the sidecar, and for how long.

use jiff::Timestamp;
use serde_json::Value;
use std::{
    fs,
    time::{Duration, SystemTime},
};
use tempfile::TempDir;
use test_support::{
    apiserver::{Cluster, shared},
    sidecar::{
        callers::{Answer, Caller, get, request},
        process::Sidecar,
        subprotocols::{spellings, subprotocol, websocket},
        wait::until_some,
    },
};

/// The server does not know the sidecar's token, so it would look at any other credential.
pub async fn real_server_never_sees_the_callers_token() {
    const PATH: &str = "/api/v1/namespaces/default/configmaps";
    let cluster = shared().await;
    let token = Cluster::token("candidate-1");
    let answer = async |addr, request| {
        let response = Caller::connect(addr).await.send(request).await.unwrap();
        Answer::read(response).await
    };

    let file = cluster.kubeconfig("candidate-0", &cluster.url());
    let mut kubeconfig: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    kubeconfig["users"][0]["user"]["token"] = "unknown".into();
    let sidecar = Sidecar::start_with(kubeconfig, "candidate-0", &[]).await;
    for (lines, _) in spellings(&subprotocol(&token)) {
        let shown: Vec<_> = lines.iter().map(|line| String::from_utf8_lossy(line)).collect();
        let answer = answer(sidecar.addr, websocket(PATH, &lines)).await;
        assert_eq!(answer.code, 401, "{shown:?}: {answer:?}");
    }
    let mut bearer = request("GET", PATH, "");
    bearer.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    assert_eq!(answer(sidecar.addr, bearer).await.code, 401);
    let query = format!("{PATH}?access_token={token}");
    assert_eq!(answer(sidecar.addr, request("GET", &query, "")).await.code, 401);
}

/// As kubelet or cert-manager does, before the old one ends.
pub async fn certificate_that_is_replaced_in_its_file_is_read() {
    const LASTS: Duration = Duration::from_secs(10);
    let (cluster, folder) = (shared().await, TempDir::new().unwrap());
    let user = ["client-certificate", "client-key"].map(|name| (name, folder.path().join(name)));
    let certify = |lasts| {
        for ((_, file), pem) in user.iter().zip(cluster.certificate("candidate-0", lasts)) {
            fs::write(file, pem).unwrap();
        }
    };
    certify(LASTS);
    let ends = Timestamp::try_from(SystemTime::now() + LASTS).unwrap();
    let file = cluster.kubeconfig("candidate-0", &cluster.url());
    let mut kubeconfig: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    kubeconfig["users"][0]["user"] =
        user.iter().map(|(name, file)| (*name, file.to_str().unwrap())).collect();
    let sidecar = Sidecar::start_with(kubeconfig, "candidate-0", &["--timing", "fast"]).await;
    certify(Duration::from_secs(3600)); // it has read the first one
    sidecar.leads().await;
    let lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/app";
    until_some("a renewal after the end of the first certificate", async || {
        let lease: Value = serde_json::from_str(&get(sidecar.addr, lease).await.body).ok()?;
        let renewed: Timestamp = lease["spec"]["renewTime"].as_str()?.parse().ok()?;
        (ends + LASTS / 2 < renewed).then_some(())
    })
    .await;
    assert_eq!(sidecar.leader().await["can_write"], true);
}
