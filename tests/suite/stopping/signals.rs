//! A controller with kube-runtime's `shutdown_on_signal`. A signal reaches each listener of a process, so each test has a
//! process of its own.
#![cfg(unix)]

use crate::support::{lease_writes, releases, steal, until};
use kube_leader_gate::testing::{ApiServer, Endpoint};
use rustix::process::Signal;
use std::{
    fs::{self, File},
    process::Command,
    time::Duration,
};
use tempfile::NamedTempFile;
use test_support::{apiserver::Guarded, program};

const PATIENCE: Duration = Duration::from_secs(60);

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
        let mut command = Command::new(program::example_of("test-support", "on_signals"));
        command.arg(how).arg(endpoint.uri()).env_remove("RUST_LOG");
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
    until(PATIENCE, "the work is dropped", || {
        replica.says("let it end within the grace after its token is cancelled")
    })
    .await;
}
