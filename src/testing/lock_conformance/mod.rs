//! Whether a lock does what an election needs of it.

mod error;
mod trial;
mod view;

pub use self::error::ErrLockConformance;

use self::trial::Trial;
use crate::lease::Lock;
use serde_json::Value;

/// Checks that `lock` keeps the rules of [`Lock`], on a lease that does not exist yet.
///
/// `put` stands for a client that is no candidate: it puts an object in the place of the lease, whatever the lease's version.
/// It is given the lease as [`Lock::get`] returned it, with a label, an annotation and an owner reference added. `delete`
/// deletes the lease. Both return when that is done.
///
/// The rules:
/// 1. `get` returns none where there is no lease, else the lease as the last write returned it.
/// 2. `create` conflicts with a lease that exists, and of two at the same time one succeeds. `update` conflicts when the
///    resource version is not the newest, and of two at the same time one succeeds. A refused write changes nothing.
/// 3. `update` of a lease that is gone is a conflict, or finds nothing. It creates nothing.
/// 4. Each write returns what it has written, with the claim in it, in a resource version that no lease had before. Versions
///    that are numbers grow.
/// 5. An update keeps the uid. A lease that was deleted and created again has another one.
/// 6. An update changes nothing but the claim: labels, annotations and owner references stay as they are.
/// 7. A watch yields the lease as it is, then each change, and the deletion, all of them whole. It works also when there is
///    no lease at its start.
/// 8. [`reconnect`](Lock::reconnect) disturbs nothing.
///
/// A call or an event that takes more than 10 s breaks a rule too.
///
/// # Errors
/// [`ErrLockConformance`] for the first rule that the lock breaks. The lease is left as it is then, else it is deleted.
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
