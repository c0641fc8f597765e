//! A real kube-apiserver with its etcd on loopback ports, for tests.
//!
//! `assets` finds the programs, `cluster` runs them, `guard` ends them, `users` defines the users, `audit` reads their
//! requests, and `objects` creates what tests need. `tests/apiserver/assets.sh` builds the programs, from the Go module
//! there and from `tests/promtool`.

mod assets;
mod audit;
mod cluster;
mod guard;
mod objects;
mod server;
mod users;
mod webhook;

pub use self::{
    assets::{Assets, assets, is_there, program, programs_are_there, promtool, promtool_is_there},
    audit::{Audit, AuditEvent, ObjectRef, ResponseStatus, User},
    cluster::{Cluster, Lasting, Sibling},
    guard::Guarded,
    objects::{create, define_widgets},
    webhook::{SlowWebhook, Stage},
};

use tokio::sync::OnceCell;

/// One server for all tests of this process. Each test uses namespaces of its own. Panics like [`assets`].
pub async fn shared() -> &'static Cluster {
    static SHARED: OnceCell<Cluster> = OnceCell::const_new();
    // A static is never dropped. Its guards notice the end of the process.
    SHARED.get_or_init(|| Cluster::start(assets())).await
}
