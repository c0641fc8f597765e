//! Nothing is left behind.

use super::replica::{MANY, Replica, pool};
use crate::support::{pass, until};
use kube_leader_gate::testing::{ApiServer, Fault};
use std::time::Duration;

fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(start_paused = true)]
async fn ended_elections_leave_no_task_or_watch() {
    for shared in [true, false] {
        for stopped in [true, false] {
            let server = ApiServer::new();
            let before = tasks();
            let a_pool = pool(&server, "a", shared);
            let with_pool = tasks();
            let a = Replica::start(&a_pool, "a", MANY);
            a.leads(Duration::from_secs(1)).await;
            let running = tasks() - with_pool;
            assert_eq!(running, 2 * MANY + usize::from(shared), "two for each election, one for the watch");
            if stopped {
                a.stop().await;
            } else {
                drop(a);
            }
            until(Duration::from_secs(1), "the tasks have ended", || tasks() == with_pool).await;
            assert_eq!(server.open_watches(), 0);
            drop(a_pool);
            until(Duration::from_secs(1), "the client has ended", || tasks() == before).await;
        }
    }
}

/// Dropping the handle of a pool neither ends its elections nor keeps them alive.
#[tokio::test(start_paused = true)]
async fn elections_outlive_their_pool_handle() {
    let server = ApiServer::new();
    let a_pool = pool(&server, "a", true);
    let a = Replica::start(&a_pool, "a", MANY);
    drop(a_pool);
    a.leads(Duration::from_secs(1)).await;
    pass(Duration::from_secs(20)).await;
    a.leads(Duration::from_millis(1)).await;
}

/// The pool may be used again after the last election has ended.
#[tokio::test(start_paused = true)]
async fn pool_can_be_used_again() {
    let server = ApiServer::new();
    let a_pool = pool(&server, "a", true);
    for _ in 0..3 {
        let a = Replica::start(&a_pool, "a", 10);
        a.leads(Duration::from_secs(1)).await;
        assert_eq!(server.open_watches(), 1);
        a.stop().await;
        until(Duration::from_secs(1), "the watch has ended", || server.open_watches() == 0).await;
    }
}

/// This also holds while the watch is being requested.
#[tokio::test(start_paused = true)]
async fn shared_watch_ends_without_elections() {
    let server = ApiServer::new();
    let _hang = server.inject(Fault::hang_before().verb("watch"));
    let a_pool = pool(&server, "a", true);
    let before = tasks();
    let a = Replica::start(&a_pool, "a", MANY);
    a.leads(Duration::from_secs(1)).await;
    assert_eq!(tasks() - before, 2 * MANY + 1);
    drop(a);
    until(Duration::from_millis(100), "the tasks have ended", || tasks() == before).await;
}
