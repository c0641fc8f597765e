//! A real kube-apiserver with its etcd on loopback ports, for tests.
//!
//! `assets` finds the programs, `cluster` runs them, `guard` ends them, `users` says who may ask, `audit` reads who asked.
//! `assets.sh` builds them from the Go module here.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "each target uses its part")]

mod assets;
mod audit;
mod cluster;
mod guard;
mod server;
mod users;

pub use self::{
    assets::{Assets, assets, program},
    audit::{Audit, AuditEvent},
    cluster::Cluster,
    guard::Guarded,
};

use tokio::sync::OnceCell;

/// One server for all tests of this process; each works in namespaces of its own. None as [`assets`].
pub async fn shared() -> Option<&'static Cluster> {
    static SHARED: OnceCell<Cluster> = OnceCell::const_new();
    let assets = assets()?;
    // Nobody drops it; its guards see the process end.
    Some(SHARED.get_or_init(|| Cluster::start(assets)).await)
}
