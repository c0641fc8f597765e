//! The checklist of `docs/PRODUCTION.md`: its items, and the test that it recommends.

use crate::support::write;
use kube_client::{Client, Config};
use kube_leader_gate::{
    Election,
    testing::{ApiServer, WriteRecord},
};
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;

/// For a program that writes once and ends.
const PATIENCE: Duration = Duration::from_secs(20);

const CHECKLIST: &str = include_str!("../../../docs/PRODUCTION.md");

#[test]
fn each_item_of_the_checklist_names_its_check() {
    let items: Vec<_> = CHECKLIST.split("\n**").skip(1).collect();
    assert!(items.len() >= 15, "{}", items.len());
    for (item, number) in items.iter().zip(1..) {
        assert!(item.starts_with(&format!("{number}. ")), "{item}");
        assert!(item.contains("\nCheck: "), "{item}");
    }
}

/// As the checklist's test does: what this program writes as a follower.
async fn written_as_follower<P: Future<Output = ()>>(program: impl FnOnce(Config) -> P) -> Vec<WriteRecord> {
    let server = ApiServer::new();
    let lease =
        json!({ "spec": { "holderIdentity": "other", "leaseDurationSeconds": 600, "leaseTransitions": 1 } });
    let path = "/apis/coordination.k8s.io/v1/namespaces/my-namespace/leases/my-controller";
    server.put("other", path, lease).unwrap();
    let endpoint = server.serve().await.unwrap();
    timeout(PATIENCE, program(endpoint.config("me"))).await.expect("it has tried its write");
    server.write_log().into_iter().filter(|write| write.user == "me").collect()
}

/// A program with two clients. The workload writes with the one that `choose` chooses.
async fn program(config: Config, choose: fn(Client, Client) -> Client) {
    let election = Election::builder("my-namespace", "my-controller").build(&config).unwrap();
    let gated = election.client(&config).unwrap();
    let client = choose(gated, Client::try_from(config).unwrap());
    let workload = async {
        // What the server's log says is the outcome.
        let _ = write(&client).await;
    };
    let _ = election.run(workload).await;
}

#[tokio::test]
async fn recommended_test_finds_ungated_client() {
    let found = written_as_follower(|config| program(config, |gated, _| gated)).await;
    assert!(found.is_empty(), "{found:?}");
    let found = written_as_follower(|config| program(config, |_, ungated| ungated)).await;
    assert_eq!(found.len(), 1, "{found:?}");
}

/// The examples are checked with the `clippy.toml` that the page recommends.
#[test]
fn recommended_clippy_toml_is_that_of_the_examples() {
    let used = include_str!("../../../crates/examples/clippy.toml");
    assert!(used.contains("disallowed-methods") && CHECKLIST.contains(&format!("```toml\n{used}```\n")));
}
