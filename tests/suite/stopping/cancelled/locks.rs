//! Calls of the locks: after a drop, the next call works.

use crate::support::{LEASE, SOON, builder, free, pass, until, within};
use futures_util::{
    StreamExt,
    future::pending,
    stream::{self, Pending},
};
use kube_client::{Client, Config, config::Kubeconfig};
use kube_leader_gate::{
    leadership::{Grantor, Term},
    lease::{
        BoxLock, ErrLock, ErrLockKind, LeaseEvent, LeaseName, LeasePool, LeaseRecord, LeaseUpdate, Lock,
        ReleaseLock,
    },
    testing::{ApiServer, Fault, lock_conformance},
};
use serde_json::json;
use std::{convert::Infallible, pin::pin, time::Duration};
use test_support::cancellation::{dropped_at_each_poll, tasks};
use tokio::sync::mpsc;

fn name() -> LeaseName {
    LeaseName::new("default", "operator").expect("a name")
}

/// Hands out the claim of its first writer. Only an election makes claims.
struct Catcher(mpsc::UnboundedSender<LeaseUpdate>);

impl Lock for Catcher {
    type Events = Pending<Result<LeaseEvent, ErrLock>>;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        Ok(None)
    }

    async fn create(&self, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        let _ = self.0.send(claim.clone());
        pending().await
    }

    async fn update(&self, _: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        self.create(claim).await
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        Ok(stream::pending())
    }
}

async fn claim(holder: &str) -> LeaseUpdate {
    let (tell, mut told) = mpsc::unbounded_channel();
    let election = builder("any").build_with(|_| Ok::<_, Infallible>(Catcher(tell))).expect("valid").start();
    let mut claim = told.recv().await.expect("a claim");
    drop(election);
    claim.holder = holder.into();
    claim
}

fn lock(server: &ApiServer) -> BoxLock {
    let service = server.service();
    let pool = LeasePool::over(move || Ok(Client::new(service.clone(), "default"))).expect("a client");
    pool.lock(name())
}

/// A server that takes a while for each call, before and after its effect.
fn slow() -> ApiServer {
    let server = ApiServer::new();
    for fault in [Fault::delay_before, Fault::delay_after] {
        // The fault stays as long as the server.
        std::mem::forget(server.inject(fault(Duration::from_millis(3))));
    }
    server
}

/// Writes as a candidate does that reads first.
async fn take(lock: &impl Lock) -> LeaseRecord {
    let taken = match lock.get().await.expect("an answer") {
        Some(seen) => lock.update(&seen, &claim("b").await).await,
        None => lock.create(&claim("b").await).await,
    };
    let taken = taken.expect("no other candidate writes");
    assert_eq!(taken.holder(), Some("b"));
    taken
}

#[test]
fn get_of_a_lock_dropped_at_each_poll_can_be_repeated() {
    let worlds = dropped_at_each_poll(async |cut| {
        let server = slow();
        free(&server);
        let lock = lock(&server);
        cut.off(lock.get()).await;
        take(&lock).await;
        drop(lock);
        until(SOON, "no task is left", || tasks() == 0).await;
    });
    assert!(worlds >= 4, "{worlds}");
}

#[test]
fn create_of_a_lock_dropped_at_each_poll_can_be_repeated() {
    let worlds = dropped_at_each_poll(async |cut| {
        let server = slow();
        let (lock, claim) = (lock(&server), claim("a").await);
        cut.off(lock.create(&claim)).await;
        take(&lock).await;
        drop(lock);
        until(SOON, "no task is left", || tasks() == 0).await;
    });
    assert!(worlds >= 4, "{worlds}");
}

#[test]
fn update_of_a_lock_dropped_at_each_poll_can_be_repeated() {
    let worlds = dropped_at_each_poll(async |cut| {
        let server = slow();
        free(&server);
        let lock = lock(&server);
        let seen = lock.get().await.expect("an answer").expect("a lease");
        let claim = claim("a").await;
        cut.off(lock.update(&seen, &claim)).await;
        // It has not landed, or it conflicts.
        let again = lock.update(&seen, &self::claim("b").await).await;
        assert!(
            again.map_or_else(|error| error.kind() == ErrLockKind::Conflict, |it| it.holder() == Some("b"))
        );
        take(&lock).await;
    });
    assert!(worlds >= 4, "{worlds}");
}

/// The plugin runs anew, since its token has run out. A caller that gives up leaves no run behind, and the next one gets the
/// result of the run that it has begun.
#[test]
fn authorization_dropped_at_each_poll_can_be_repeated() {
    let worlds = dropped_at_each_poll(async |cut| {
        let credential = json!({
            "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
            "status": { "token": "own", "expirationTimestamp": "2020-01-01T00:00:00Z" },
        });
        let user = json!({ "exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
            "command": "echo", "args": [credential.to_string()],
        } });
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{ "name": "c", "cluster": { "server": "http://127.0.0.1:1" } }],
            "users": [{ "name": "u", "user": user }],
            "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
        });
        let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig).expect("a kubeconfig");
        let pool = LeasePool::new(&Config::try_from(kubeconfig).expect("a configuration")).expect("a pool");
        let access = pool.access().expect("its configuration is known");
        cut.off(access.authorization()).await;
        let value = within(SOON, "the value", access.authorization()).await.expect("the plugin works");
        assert_eq!(value.expect("a token"), "Bearer own");
        drop((access, pool));
        until(SOON, "no task is left", || tasks() == 0).await;
    });
    assert!(worlds >= 2, "{worlds}");
}

/// The next watch yields the lease, and the dropped one is closed.
#[test]
fn watch_of_a_lock_dropped_at_each_poll_leaves_no_watch() {
    for shared in [false, true] {
        let worlds = dropped_at_each_poll(async |cut| {
            let server = slow();
            free(&server);
            let service = server.service();
            let connect = move || Ok(Client::new(service.clone(), "default"));
            let pool = LeasePool::over(connect).expect("a pool");
            let pool = if shared { pool.share_watches() } else { pool };
            let lock = pool.lock(name());
            drop(cut.off(lock.watch()).await);
            until(SOON, "the watch is closed", || server.open_watches() == 0).await;
            let mut events = within(SOON, "a watch", lock.watch()).await.expect("it begins");
            let first = within(SOON, "the lease", events.next()).await;
            assert!(matches!(first, Some(Ok(LeaseEvent::Seen(_)))), "{first:?}");
            drop((events, lock, pool));
            until(SOON, "no task is left", || tasks() == 0).await;
        });
        assert!(worlds >= 4, "{worlds}");
    }
}

/// Another lock that follows the same watch loses nothing by the drop.
#[test]
fn watch_dropped_at_each_poll_does_not_end_its_neighbours() {
    dropped_at_each_poll(async |cut| {
        let server = slow();
        free(&server);
        let service = server.service();
        let pool = LeasePool::over(move || Ok(Client::new(service.clone(), "default"))).expect("a pool");
        let pool = pool.share_watches();
        let other = pool.lock(LeaseName::new("default", "other").expect("a name"));
        let lock = pool.lock(name());
        let both = async { tokio::join!(lock.watch(), lock.watch()) };
        let mut events = pin!(other.watch().await.expect("it begins"));
        drop(cut.off(both).await);
        other.create(&claim("a").await).await.expect("it is new");
        let event = within(SOON, "the event", events.next()).await;
        assert!(matches!(event, Some(Ok(LeaseEvent::Seen(seen))) if seen.holder() == Some("a")));
    });
}

/// The events of one lock, whose reader is dropped at each poll: each change comes, or a later one.
#[test]
fn events_of_a_lock_dropped_at_each_poll_lose_nothing() {
    for shared in [false, true] {
        let worlds = dropped_at_each_poll(async |cut| {
            let server = ApiServer::new();
            free(&server);
            let service = server.service();
            let pool = LeasePool::over(move || Ok(Client::new(service.clone(), "default"))).expect("a pool");
            let pool = if shared { pool.share_watches() } else { pool };
            let lock = pool.lock(name());
            let mut events = lock.watch().await.expect("it begins");
            let writer = server.clone();
            tokio::spawn(async move {
                for number in 1..=5 {
                    pass(Duration::from_millis(1)).await;
                    let edit =
                        |lease: &mut serde_json::Value| lease["spec"]["leaseTransitions"] = number.into();
                    writer.edit("outsider", LEASE, edit).expect("it is there");
                }
            });
            let mut seen = Vec::new();
            let read = async {
                while seen.last() != Some(&5) {
                    if let Some(Ok(LeaseEvent::Seen(record))) = events.next().await {
                        seen.push(record.transitions());
                    }
                }
            };
            cut.off(read).await;
            while seen.last() != Some(&5) {
                match within(SOON, "the next event", events.next()).await {
                    Some(Ok(LeaseEvent::Seen(record))) => seen.push(record.transitions()),
                    other => panic!("{other:?}"),
                }
            }
            assert!(seen.is_sorted() && seen.len() <= 6, "{seen:?}");
            // A shared watch keeps the newest state only.
            assert!(shared || seen == [0, 1, 2, 3, 4, 5], "{seen:?}");
        });
        assert!(worlds >= 4, "{worlds}");
    }
}

/// The gate closes at the first poll of a release, before anything is sent.
#[test]
fn s3_release_dropped_at_each_poll_has_closed_the_gate() {
    let worlds = dropped_at_each_poll(async |cut| {
        let server = slow();
        free(&server);
        let grantor = Grantor::new();
        let deadline = grantor.now().saturating_add(Duration::from_secs(60));
        let _grant = grantor.grant(Term::new("uid", 1), deadline).expect("in time");
        let lock = ReleaseLock::new(lock(&server), &grantor);
        let seen = lock.get().await.expect("an answer").expect("a lease");
        let release = claim("").await;
        cut.off(lock.update(&seen, &release)).await;
        assert_eq!(grantor.leadership().can_write(), !cut.polled());
        take(&lock).await;
    });
    assert!(worlds >= 4, "{worlds}");
}

/// Not cancel-safe: it leaves the lease behind. It works again once the lease is gone.
#[test]
fn conformance_check_dropped_at_each_poll_can_be_repeated() {
    let worlds = dropped_at_each_poll(async |cut| {
        let server = ApiServer::new();
        let lock = lock(&server);
        let put = async |object| drop(server.put("outsider", LEASE, object).expect("a valid lease"));
        let delete = async || server.delete("outsider", LEASE).expect("it is there");
        let outcome = cut.off(lock_conformance(&lock, put, delete)).await;
        assert!(outcome.is_none_or(|outcome| outcome.is_ok()));
        // A write of the dropped check may still be on its way.
        pass(Duration::from_millis(1)).await;
        let _ = server.delete("outsider", LEASE);
        lock_conformance(&lock, put, delete).await.expect("it conforms");
        drop(lock);
        until(SOON, "no task is left", || tasks() == 0).await;
    });
    assert!(worlds > 50, "{worlds}");
}
