//! A person moves leadership and frees a lease by hand, with the commands of `docs/TIMING.md`.

use crate::{
    apiserver::Cluster,
    candidate::{builder, prepare, start},
    real::Real,
    support::{release, until},
    world::World,
};
use k8s_openapi::api::apps::v1::Deployment;
use kube_client::{Api, api::PostParams};
use kube_leader_gate::{LeaseTiming, testing::Judge};
use serde_json::json;
use test_support::assert_safety;

const GUIDE: &str = include_str!("../../docs/TIMING.md");
const USERS: [&str; 2] = ["candidate-0", "candidate-1"];

/// Runs the documented command for this candidate.
async fn ask_for(world: &Real<&'static Cluster>, user: &str) {
    run(world, "annotate", &[("POD", user)]).await;
}

/// Runs the documented command that begins with this, for the lease of this world.
async fn run(world: &Real<&'static Cluster>, begin: &str, replaced: &[(&str, &str)]) {
    let (_, command) = GUIDE.split_once(&format!("\nkubectl {begin} ")).expect("the command");
    let (arguments, _) = command.split_once('\n').expect("its end");
    let mut arguments = format!("{begin} {arguments}").replace("my-namespace", world.namespace());
    for (old, new) in [("my-controller", "operator")].iter().chain(replaced) {
        arguments = arguments.replace(old, new);
    }
    let mut kubectl = world.cluster.kubectl("admin");
    kubectl.args(arguments.split_whitespace());
    let output = tokio::task::spawn_blocking(move || kubectl.output()).await.expect("it ends");
    let output = output.expect("kubectl");
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

pub async fn documented_command_moves_leadership_without_late_writes() {
    let world = Real::shared().await;
    prepare(&world).await;
    let a = start(&world, USERS[0], builder(&world, USERS[0])).await;
    a.elected().await;
    let b = start(&world, USERS[1], builder(&world, USERS[1])).await;
    let _writers = [a.writing(), a.writing(), b.writing(), b.writing()];
    until("b knows a", async || b.candidate().holder().as_deref() == Some(USERS[0])).await;
    ask_for(&world, USERS[1]).await;
    b.elected().await;
    assert!(!a.candidate().is_leader() && release(&world, USERS[0]).await.is_some());
    b.renews(2).await;
    assert!(b.candidate().is_leader(), "it stays there");
    ask_for(&world, USERS[0]).await;
    a.elected().await;
    a.renews(1).await;
    let verdict = Judge::new(world.namespace(), "operator", USERS).verdict(&world.writes().await);
    let overlaps: Vec<_> = verdict.overlaps().collect();
    assert_safety!(overlaps.is_empty() && verdict.strays.is_empty(), "{overlaps:#?}, {:#?}", verdict.strays);
    assert_eq!(verdict.terms.len(), 3, "{:#?}", verdict.terms);
}

/// The times are the default ones, so no candidate has waited for the end of the dead holder's lease.
pub async fn documented_commands_free_the_lease_of_a_dead_holder() {
    let world = Real::shared().await;
    prepare(&world).await;
    let patient = |user| builder(&world, user).timing(LeaseTiming::default());
    let a = start(&world, USERS[0], patient(USERS[0])).await;
    a.elected().await;
    let b = start(&world, USERS[1], patient(USERS[1])).await;
    until("b knows a", async || b.candidate().holder().as_deref() == Some(USERS[0])).await;
    drop(a); // as a crash: nothing is released
    run(&world, "delete lease", &[]).await;
    until("b sees it", async || b.candidate().holder().is_none()).await;
    assert!(!b.candidate().is_leader(), "it waits for a");
    let labels = json!({ "app": "operator" });
    let containers = json!([{ "name": "controller", "image": "registry.example/my-controller:1" }]);
    let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": containers } });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "operator" },
        "spec": { "selector": { "matchLabels": labels }, "template": template },
    });
    let deployments = Api::<Deployment>::namespaced(world.cluster.client("admin"), world.namespace());
    let deployment = serde_json::from_value(deployment).expect("a Deployment");
    deployments.create(&PostParams::default(), &deployment).await.expect("it is created");
    run(&world, "rollout restart", &[]).await; // there is no controller for it: this test restarts the replica
    drop(b);
    let again = start(&world, USERS[1], patient("another process")).await;
    again.elected().await;
}
