//! A controller with kube-runtime's `shutdown_on_signal`. A signal reaches each listener of a process, so each test has a
//! process of its own.
#![cfg(unix)]

use crate::support::{lease_writes, releases, steal, until};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    runtime::{Controller, controller::Action, watcher},
};
use kube_leader_gate::{
    Election, Identity, LeaseTiming, shutdown_signal,
    testing::{ApiServer, Endpoint},
};
use rustix::process::Signal;
use std::{
    convert::Infallible,
    env,
    fs::{self, File},
    future::{pending, ready},
    process::Command,
    sync::Arc,
    time::Duration,
};
use tempfile::NamedTempFile;
use test_support::apiserver::Guarded;

const PATIENCE: Duration = Duration::from_secs(60);
/// For the process of a test: how it runs its election, and the address of the server.
const ROLE: &str = "LEADER_GATE_ROLE";

struct Replica {
    server: ApiServer,
    process: Guarded,
    log: NamedTempFile,
    _endpoint: Endpoint,
}

impl Replica {
    /// A process whose controller works.
    async fn working(how: &str) -> Self {
        let server = ApiServer::new();
        let endpoint = server.serve().await.unwrap();
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "stopping::signals::process_of_the_other_tests", "--nocapture"]);
        command.env(ROLE, format!("{how} {}", endpoint.uri())).env_remove("RUST_LOG");
        let log = NamedTempFile::new().unwrap();
        let out = || File::options().append(true).open(log.path()).unwrap();
        let process = Guarded::spawn_with(&command, out().into(), out().into()).unwrap();
        let replica = Self { server, process, log, _endpoint: endpoint };
        until(PATIENCE, "it leads", || !replica.lease_writes_are(0)).await;
        let works = || replica.server.reads("a", "watch", "configmaps") > 0;
        until(PATIENCE, "the controller works", works).await;
        replica
    }

    fn lease_writes_are(&self, count: usize) -> bool {
        lease_writes(&self.server, "a").len() == count
    }

    fn says(&self, what: &str) -> bool {
        fs::read_to_string(self.log.path()).unwrap().contains(what)
    }
}

/// Does nothing without the variable.
#[tokio::test]
async fn process_of_the_other_tests() {
    let Ok(role) = env::var(ROLE) else { return };
    let (how, server) = role.split_once(' ').unwrap();
    tracing_subscriber::fmt().with_ansi(false).init();
    let mut config = kube::Config::new(server.parse().unwrap());
    config.auth_info.token = Some("a".into());
    let election = Election::builder("default", "operator")
        .identity(Identity::new("a").unwrap())
        .timing(LeaseTiming::fast())
        .grace(Duration::from_secs(1))
        .build(&config)
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(election.client(&config).unwrap(), "default");
    let controller = || {
        Controller::new(maps.clone(), watcher::Config::default())
            .shutdown_on_signal()
            .run(
                |_, _| ready(Ok::<_, Infallible>(Action::await_change())),
                |_, _: &Infallible, _| Action::await_change(),
                Arc::new(()),
            )
            .for_each(|_| ready(()))
    };
    let signal = shutdown_signal().unwrap();
    match how {
        "run" => election.run(controller()).await.map(drop),
        "run_until" => election.run_until(signal, controller()).await.map(drop),
        "leading" => election.run_while_leading(signal, |_, _| controller()).await.map(drop),
        _ => election.run_while_leading(pending(), |_, _| controller()).await.map(drop),
    }
    .unwrap();
}

#[tokio::test]
async fn controller_on_signals_hands_over_in_each_mode() {
    for how in ["run", "run_until", "leading"] {
        let mut replica = Replica::working(how).await;
        replica.process.signal(Signal::TERM);
        let status = replica.process.ended(PATIENCE).await;
        assert!(status.is_some_and(|it| it.success()), "{how}: {status:?}");
        assert_eq!(releases(&replica.server, "a").len(), 1, "{how}");
        assert!(!replica.says("WARN"), "{how}: the controller ends in time");
    }
}

/// The election does not know of the signal.
#[tokio::test]
async fn controller_that_alone_hears_signal_begins_again() {
    let mut replica = Replica::working("alone").await;
    replica.process.signal(Signal::TERM);
    let watches = || replica.server.reads("a", "watch", "configmaps");
    until(PATIENCE, "it gives the lease up", || releases(&replica.server, "a").len() == 1).await;
    until(PATIENCE, "the next term's controller works", || watches() == 2).await;
    assert!(replica.says("if it ends on a signal, give run_while_leading the same signal"));
}

#[tokio::test]
async fn controller_on_signals_alone_outlives_its_term() {
    let replica = Replica::working("leading").await;
    steal(&replica.server);
    until(PATIENCE, "the work is dropped", || replica.says("let it end when its token is cancelled")).await;
}
