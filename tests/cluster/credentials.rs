//! Which user a real kube-apiserver sees in a request through the sidecar.

use std::fs;
use test_support::{
    apiserver::{Cluster, shared},
    sidecar::{
        callers::{Answer, Caller, request},
        process::Sidecar,
        subprotocols::{spellings, subprotocol, websocket},
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
    let mut kubeconfig: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
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
