//! A person moves leadership by hand, with the command of `docs/TIMING.md`.

use crate::{
    apiserver::Cluster,
    candidate::{builder, prepare, start},
    real::Real,
    support::{release, until},
    world::World,
};
use kube_leader_gate::testing::Judge;
use test_support::assert_safety;

const GUIDE: &str = include_str!("../../docs/TIMING.md");
const USERS: [&str; 2] = ["candidate-0", "candidate-1"];

/// Runs the documented command for this candidate.
async fn ask_for(world: &Real<&'static Cluster>, user: &str) {
    let (_, command) = GUIDE.split_once("`kubectl annotate").expect("the command");
    let (arguments, _) = command.split_once('`').expect("its end");
    let arguments = arguments.replace("my-controller", "operator").replace("my-namespace", world.namespace());
    let arguments = format!("annotate{}", arguments.replace("POD", user));
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
