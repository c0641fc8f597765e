//! The table of mistakes, `docs/observability/mistakes.tsv`: what the election says. With `--nocapture`, also after how long.

use crate::{
    candidate::{Contender, builder, leading, prepare, start, timing, write},
    real::Real,
    support::{PATIENCE, closed_port, until, within},
    world::World,
};
use kube_client::{Client, Config};
use kube_leader_gate::{Election, Identity, election::Candidate};
use std::time::{Duration, Instant};
use test_support::{apiserver::Cluster, harness::say};

const TABLE: &str = include_str!("../../docs/observability/mistakes.tsv");

const UNGATED: &str = "a second client that is not gated";
const NEVER_DRIVEN: &str = "an election that is built and never driven";
const NO_ROLE: &str = "the Role for the lease is missing";
const NO_NAMESPACE: &str = "the namespace does not exist";
const TWINS: &str = "two processes with one identity";
const WRONG_ADDRESS: &str = "a kubeconfig with a wrong address";
const WRONG_CA: &str = "a kubeconfig with another cluster's CA";
const WRONG_TOKEN: &str = "a kubeconfig with a wrong token";
const TOO_OLD: &str = "an API server without `coordination.k8s.io/v1`";

/// A row of the table.
struct Row {
    says: String,
    within: Duration,
}

fn rows() -> impl Iterator<Item = Vec<&'static str>> {
    TABLE.lines().skip(1).map(|line| line.split('\t').collect())
}

impl Row {
    fn of(mistake: &str) -> Self {
        let row = rows().find(|row| row[0] == mistake).unwrap_or_else(|| panic!("no row: {mistake}"));
        let (count, unit) = row[2].split_once(' ').unwrap_or_else(|| panic!("no time: {row:?}"));
        let count: u32 = count.parse().unwrap_or_else(|_| panic!("no time: {row:?}"));
        let unit = match unit {
            "s" => Duration::from_secs(1),
            "retry periods" => timing().retry_period(),
            _ => panic!("no time: {row:?}"),
        };
        Self { says: row[1].trim_end_matches('…').to_owned(), within: unit * count }
    }

    /// Waits until `heard` says what the table says. Without a time in the table, it says so at once.
    async fn appears(&self, mut heard: impl AsyncFnMut() -> Option<String>) {
        let (began, mut last) = (Instant::now(), None);
        let appears = async {
            loop {
                last = heard().await;
                if self.within.is_zero() || last.as_ref().is_some_and(|last| last.contains(&self.says)) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        // A busy machine needs longer than the table says.
        let _ = tokio::time::timeout(self.within + PATIENCE, appears).await;
        let said = last.as_ref().is_some_and(|last| last.contains(&self.says));
        assert!(said, "not within {:?}: {:?}, but {last:?}", self.within + PATIENCE, self.says);
        say(format_args!("{:?}: after {:.1?} of {:?}", self.says, began.elapsed(), self.within));
    }

    /// The log, `/leader`, `/readyz` and each rejected write say what `trouble` says.
    async fn is_trouble_of(&self, candidate: &Candidate) {
        self.appears(async || candidate.trouble().map(|it| it.to_string())).await;
        assert!(!candidate.can_write());
    }
}

pub fn each_mistake_has_a_scene() {
    let scenes =
        [UNGATED, NEVER_DRIVEN, NO_ROLE, NO_NAMESPACE, TWINS, WRONG_ADDRESS, WRONG_CA, WRONG_TOKEN, TOO_OLD];
    assert_eq!(rows().map(|row| row[0]).collect::<Vec<_>>(), scenes);
}

/// The API server cannot know that a follower sends this, so the test of `docs/PRODUCTION.md` is what finds it.
pub async fn ungated_client_of_follower_writes() {
    let row = Row::of(UNGATED);
    assert_eq!(row.says, "nothing");
    let world = Real::shared().await;
    prepare(&world).await;
    let (_leader, follower) = (leading(&world, "candidate-0").await, start_follower(&world).await);
    follower.write().await.unwrap_err();
    write(&world.client("candidate-1")).await.expect("no gate refuses it");
    assert_eq!(follower.candidate().trouble(), None);
    let log = world.writes().await;
    assert_eq!(log.iter().filter(|it| it.user == "candidate-1" && it.resource == "configmaps").count(), 1);
}

async fn start_follower(world: &Real<&'static Cluster>) -> Contender {
    let follower = start(world, "candidate-1", builder(world, "candidate-1")).await;
    until("it knows the leader", async || follower.candidate().holder().is_some()).await;
    follower
}

pub async fn election_that_is_never_driven_says_so() {
    let row = Row::of(NEVER_DRIVEN);
    let world = Real::shared().await;
    let joined = world.join("candidate-0", builder(&world, "candidate-0")).await;
    row.appears(async || Some(write(&joined.client).await.unwrap_err().to_string())).await;
    row.is_trouble_of(&joined.election.candidate()).await;
}

pub async fn missing_role_is_named() {
    let world = Real::shared().await;
    let candidate = start(&world, "restricted-9", builder(&world, "restricted-9")).await;
    Row::of(NO_ROLE).is_trouble_of(candidate.candidate()).await;
}

/// An election of `candidate-0` with this configuration, in this namespace.
async fn trouble_with(mistake: &str, namespace: &str, config: Config) {
    let election = Election::builder(namespace, "operator")
        .identity(Identity::new("candidate-0").expect("an identity"))
        .timing(timing())
        .build(&config)
        .expect("a valid election");
    let running = election.start();
    Row::of(mistake).is_trouble_of(running.candidate()).await;
    within(PATIENCE, "it stops", running.stop()).await;
}

pub async fn missing_namespace_is_named() {
    let config = Real::shared().await.config("candidate-0");
    trouble_with(NO_NAMESPACE, "there-is-none", config).await;
}

pub async fn twins_are_named() {
    let world = Real::shared().await;
    // The two are one process here, and say that they stand for two.
    let twin = async || start(&world, "candidate-0", builder(&world, "candidate-0").apart()).await;
    let (first, second) = (twin().await, twin().await);
    // Which of the two says so depends on whose write the other sees first.
    let troubles = || [&first, &second].map(|twin| twin.candidate().trouble());
    Row::of(TWINS).appears(async || troubles().into_iter().flatten().next().map(|it| it.to_string())).await;
}

pub async fn wrong_address_is_named() {
    let world = Real::shared().await;
    let mut config = world.config("candidate-0");
    let (_socket, addr) = closed_port();
    config.cluster_url = format!("https://{addr}").parse().expect("a URL");
    trouble_with(WRONG_ADDRESS, world.namespace(), config).await;
}

pub async fn wrong_ca_is_named() {
    let world = Real::shared().await;
    let other = Real::alone().await;
    let mut config = world.config("candidate-0");
    config.root_cert = other.config("candidate-0").root_cert;
    trouble_with(WRONG_CA, world.namespace(), config).await;
}

pub async fn wrong_token_is_named() {
    let world = Real::shared().await;
    let mut config = world.config("candidate-0");
    config.auth_info.token = Some("wrong".to_owned().into());
    trouble_with(WRONG_TOKEN, world.namespace(), config).await;
}

/// A server answers a group that it does not serve as any path that it does not know.
pub async fn server_without_leases_is_named() {
    let world = Real::shared().await;
    let mut config = world.config("candidate-0");
    config.cluster_url = format!("{}/unknown", world.cluster.url()).parse().expect("a URL");
    let answer = Client::try_from(config.clone()).expect("a client").apiserver_version().await;
    assert!(answer.is_err(), "it knows no path below");
    trouble_with(TOO_OLD, world.namespace(), config).await;
}
