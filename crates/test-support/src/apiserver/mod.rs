//! A real kube-apiserver with its etcd on loopback ports, for tests.
//!
//! `assets` finds the programs, `cluster` runs them, `guard` ends them, `users` says who may ask, `audit` reads who asked.
//! `tests/apiserver/assets.sh` builds them from the Go module there.

mod assets;
mod audit;
mod cluster;
mod guard;
mod server;
mod users;

pub use self::{
    assets::{Assets, assets, is_there, program, programs_are_there},
    audit::{Audit, AuditEvent, ObjectRef, ResponseStatus, User},
    cluster::Cluster,
    guard::Guarded,
};

use tokio::sync::OnceCell;

/// One server for all tests of this process; each works in namespaces of its own. Panics as [`assets`].
pub async fn shared() -> &'static Cluster {
    static SHARED: OnceCell<Cluster> = OnceCell::const_new();
    // Nobody drops it; its guards see the process end.
    SHARED.get_or_init(|| Cluster::start(assets())).await
}
