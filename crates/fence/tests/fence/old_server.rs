//! A server without admission policies.

use kube_leader_gate::{Policy, kube_client::Client, testing::ApiServer};
use kube_leader_gate_fence::{ErrFence, Fence, Writers};

/// The in-process API server has none, like one that is older than 1.30.
#[tokio::test]
async fn an_api_server_without_policies_is_named() {
    let server = ApiServer::new();
    let client = Client::new(server.service(), "default");
    let lease = "default/operator".parse().unwrap();
    let fence = Fence::new(&lease, &Writers::group("replicas").unwrap(), &Policy::strict()).unwrap();
    for error in [
        fence.check(&client).await.unwrap_err(),
        fence.apply(&client).await.unwrap_err(),
        fence.remove(&client).await.unwrap_err(),
    ] {
        assert!(matches!(error, ErrFence::TooOld), "{error}");
        assert!(error.to_string().ends_with("the fence needs Kubernetes 1.30 or newer"));
    }
    assert!(server.write_log().is_empty());
}
