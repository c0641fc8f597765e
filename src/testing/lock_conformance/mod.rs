//! Checks whether a lock keeps the rules that an election relies on.

mod error;
mod trial;
mod view;

pub use self::error::ErrLockConformance;

use self::trial::Trial;
use crate::lease::Lock;
use serde_json::Value;

/// Checks that `lock` keeps the rules of [`Lock`], on a lease that does not exist yet.
///
/// `put` stands for a client that is not a candidate. It replaces the lease with an object, whatever version the
/// lease has. The object is the lease as [`Lock::get`] returned it, plus a label, an annotation and an owner
/// reference. `delete` deletes the lease. Both return when that is done.
///
/// The rules:
/// 1. `get` returns the lease as the last write returned it, or none if there is no lease.
/// 2. `create` conflicts if the lease exists. Of two creations at the same time, one succeeds. `update` conflicts if
///    the resource version is not the newest. Of two updates at the same time, one succeeds. A refused write changes
///    nothing.
/// 3. `update` of a deleted lease fails with a conflict or with "not found". It creates nothing.
/// 4. Each write returns the lease that it wrote, with the claim in it and a new resource version. Versions that are
///    numbers grow.
/// 5. An update keeps the uid. A lease that was deleted and created again has a new one.
/// 6. An update changes only the claim: labels, annotations and owner references stay as they are.
/// 7. A watch yields the present lease, then each change, and the deletion. Each object is complete. The watch also
///    works if there is no lease at its start.
/// 8. [`reconnect`](Lock::reconnect) has no visible effect.
///
/// A call or an event that takes more than 10 s also breaks a rule.
///
/// Not cancel-safe: if the future is dropped, the lease stays as it is. Delete it before the next check.
///
/// # Errors
/// [`ErrLockConformance`] for the first rule that the lock breaks. The lease then stays as it is. Otherwise the check
/// deletes it.
///
/// # Example
/// ```
/// # #[allow(dead_code)]
/// # mod map_lock {
#[doc = include_str!("../../../examples/map_lock/map_lock.rs")]
/// # }
/// # use map_lock::Leases;
/// use kube_leader_gate::{lease::LeaseName, testing::lock_conformance};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let (leases, name) = (Leases::default(), LeaseName::new("default", "my-controller")?);
/// let lock = leases.lock(name.clone());
/// lock_conformance(&lock, async |object| leases.put(&name, object), async || leases.delete(&name)).await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn lock_conformance<L: Lock>(
    lock: &L,
    put: impl AsyncFn(Value),
    delete: impl AsyncFn(),
) -> Result<(), ErrLockConformance> {
    Trial::new(lock, put, delete).run().await
}
