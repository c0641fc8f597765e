//! Changes that happen while this replica follows, in paused time over the in-process API server.

use crate::{
    operator::{self, Greeting, Mode, NAME},
    user::User,
};
use kube::{Client, CustomResourceExt};
use kube_leader_gate::{
    CancellationToken, Candidate, Election, Identity, LeaseTiming,
    election::ErrElectionEnded,
    lease::LeasePool,
    testing::{ApiServer, TokioClock, WriteRecord},
};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use test_support::harness::say;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/greeting-operator";
const KINDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// In paused time.
const PATIENCE: Duration = Duration::from_secs(5);

/// A replica as a task.
struct Replica {
    leader: Candidate,
    shutdown: CancellationToken,
    task: JoinSet<Result<(), ErrElectionEnded>>,
}

/// A server that serves the kind.
fn server() -> ApiServer {
    let server = ApiServer::new();
    let mut kind = serde_json::to_value(Greeting::crd()).unwrap();
    kind["status"] = json!({ "conditions": [{ "type": "Established", "status": "True" }] });
    server.put("setup", &format!("{KINDS}/{}", Greeting::crd_name()), kind).unwrap();
    server
}

fn user(server: &ApiServer) -> User {
    User::new(Client::new(server.service().user("user"), "default"))
}

impl Replica {
    fn start(server: &ApiServer, name: &str, mode: Mode) -> Self {
        let client = Client::new(server.service().user(name), "default");
        let inner = client.clone();
        let election = Election::builder("default", NAME)
            .identity(Identity::new(name).unwrap())
            .timing(LeaseTiming::fast())
            .clock(Arc::new(TokioClock::new()))
            .build_in(&LeasePool::over(move || Ok(inner.clone())).expect("a client"))
            .unwrap();
        let (leader, client) = (election.candidate(), election.wrap(client));
        let shutdown = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(operator::run(election, client, mode, shutdown.clone()));
        Self { leader, shutdown, task }
    }

    async fn leads(&self) {
        timeout(PATIENCE, self.leader.elected()).await.expect("the candidate leads");
    }

    async fn stop(mut self) {
        self.shutdown.cancel();
        let outcome = timeout(PATIENCE, self.task.join_next()).await.expect("it ends");
        outcome.expect("it ran").unwrap().unwrap();
    }
}

/// Another candidate holds the lease. With an empty name, that one has released it.
fn held_by(server: &ApiServer, holder: &str) {
    let edited = server.edit("outsider", LEASE, |lease| {
        lease["spec"]["holderIdentity"] = holder.into();
        lease["spec"]["leaseTransitions"] = 7.into();
        if holder.is_empty() {
            lease["spec"]["leaseDurationSeconds"] = 1.into();
            let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
            lease["spec"]["acquireTime"] = now.clone().into();
            lease["spec"]["renewTime"] = now.into();
        }
    });
    edited.unwrap();
}

fn work_of(server: &ApiServer, replica: &str) -> Vec<WriteRecord> {
    let mut log = server.write_log();
    log.retain(|it| it.user == replica && it.resource != "leases");
    log
}

pub async fn gated() {
    changes_during_following_are_reconciled_at_gain(Mode::Gated).await;
}

pub async fn leading_only() {
    changes_during_following_are_reconciled_at_gain(Mode::LeadingOnly).await;
}

async fn changes_during_following_are_reconciled_at_gain(mode: Mode) {
    let server = server();
    let replica = Replica::start(&server, "a", mode);
    replica.leads().await;
    let mut user = user(&server);
    let (changed, deleted) = (user.create().await.unwrap(), user.create().await.unwrap());
    user.satisfied(PATIENCE).await.unwrap();

    held_by(&server, "outsider");
    // The replica has seen that, and its open work has ended.
    sleep(Duration::from_secs(1)).await;
    let before = work_of(&server, "a").len();
    user.change(&changed, "another person").await.unwrap();
    user.delete(&deleted).await.unwrap();
    user.create().await.unwrap();
    sleep(Duration::from_secs(3)).await;
    assert_eq!(work_of(&server, "a").len(), before, "a follower has written");

    held_by(&server, "");
    replica.leads().await;
    let gained = Instant::now();
    user.satisfied(Duration::from_secs(1)).await.unwrap();
    say(format_args!("{mode:?}: everything was right {:?} after the gain", gained.elapsed()));
    replica.stop().await;
}

/// The finalizer holds the greeting until its text is gone.
pub async fn text_is_deleted_before_its_greeting() {
    let server = server();
    let replica = Replica::start(&server, "a", Mode::Gated);
    let mut user = user(&server);
    let name = user.create().await.unwrap();
    user.satisfied(PATIENCE).await.unwrap();
    let before = work_of(&server, "a").len();
    user.delete(&name).await.unwrap();
    user.satisfied(PATIENCE).await.unwrap();
    let done: Vec<_> =
        work_of(&server, "a").split_off(before).iter().map(|it| (it.verb, it.resource.clone())).collect();
    assert_eq!(done[..2], [("delete", "configmaps".to_owned()), ("patch", "greetings".to_owned())]);
    assert!(server.objects("/api/v1/namespaces/default/configmaps").is_empty());
    replica.stop().await;
}

/// A user has deleted the text.
pub async fn deleted_owned_map_is_recreated() {
    let server = server();
    let replica = Replica::start(&server, "a", Mode::Gated);
    let mut user = user(&server);
    let name = user.create().await.unwrap();
    user.satisfied(PATIENCE).await.unwrap();
    server.delete("outsider", &format!("/api/v1/namespaces/default/configmaps/{name}-greeting")).unwrap();
    user.satisfied(PATIENCE).await.unwrap();
    replica.stop().await;
}

/// A stop ends the controller, then releases the lease.
pub async fn stop_releases_the_lease() {
    for mode in [Mode::Gated, Mode::LeadingOnly] {
        let server = server();
        let replica = Replica::start(&server, "a", mode);
        replica.leads().await;
        user(&server).create().await.unwrap();
        replica.stop().await;
        assert_eq!(server.object(LEASE).unwrap()["spec"]["holderIdentity"], "", "{mode:?}");
        let last = server.write_log().pop().unwrap();
        assert_eq!(last.resource, "leases", "{mode:?}: the release is the last thing it writes");
    }
}
