//! What a watch shows of the lease that is checked, and the error of the check.

use crate::lease::{ErrLock, LeaseEvent, LeaseRecord};
use futures_util::{Stream, StreamExt};
use std::{error::Error, fmt, time::Duration};
use tokio::time::timeout;

/// How long a call or an event may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The lock breaks a rule of [`lock_conformance`](super::lock_conformance()). The text names the rule, and what was
/// found.
///
/// The check ends at the first such rule, and the lease stays as it is. Mend the lock: an election over it may let two
/// replicas write. Delete the lease before you check again.
#[derive(Clone, Debug)]
pub struct ErrLockConformance(String);

pub(super) type Outcome<T = ()> = Result<T, ErrLockConformance>;

pub(super) fn broken(rule: &str, found: &dyn fmt::Display) -> ErrLockConformance {
    ErrLockConformance(format!("the lock breaks a rule: {rule}; found: {found}"))
}

pub(super) struct View<S>(pub(super) S);

impl<S: Stream<Item = Result<LeaseEvent, ErrLock>> + Unpin> View<S> {
    /// Waits until the watch shows `record`. It may show earlier states again before that.
    pub(super) async fn shows(&mut self, rule: &'static str, record: &LeaseRecord) -> Outcome {
        loop {
            match self.next(rule).await? {
                LeaseEvent::Seen(seen) if seen == *record => return Ok(()),
                LeaseEvent::Seen(seen) if seen.resource_version() != record.resource_version() => {}
                other => return Err(broken(rule, &format_args!("{other:?} for {record:?}"))),
            }
        }
    }

    /// Waits until the watch shows the deletion of `record`'s object.
    pub(super) async fn shows_deletion(&mut self, rule: &'static str, record: &LeaseRecord) -> Outcome {
        loop {
            match self.next(rule).await? {
                LeaseEvent::Deleted(last) if last.uid() == record.uid() => return Ok(()),
                LeaseEvent::Seen(seen) if seen.uid() == record.uid() => {}
                other => return Err(broken(rule, &format_args!("{other:?} for the deletion of {record:?}"))),
            }
        }
    }

    async fn next(&mut self, rule: &'static str) -> Outcome<LeaseEvent> {
        match timeout(PATIENCE, self.0.next()).await {
            Ok(Some(Ok(event))) => Ok(event),
            Ok(Some(Err(error))) => Err(broken(rule, &format_args!("the watch fails: {error}"))),
            Ok(None) => Err(broken(rule, &"the watch has ended")),
            Err(_) => Err(broken(rule, &format_args!("no such event in {PATIENCE:?}"))),
        }
    }
}

impl fmt::Display for ErrLockConformance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ErrLockConformance {}
