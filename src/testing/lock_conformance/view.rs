//! Checks what one watch shows.

use super::error::ErrLockConformance;
use crate::lease::{ErrLock, LeaseEvent, LeaseRecord};
use futures_util::{Stream, StreamExt};
use std::time::Duration;
use tokio::time::timeout;

/// How long a call or an event may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct View<S>(pub(super) S);

impl<S: Stream<Item = Result<LeaseEvent, ErrLock>> + Unpin> View<S> {
    /// Waits until the watch shows `record`. It may show earlier states again before that.
    pub(super) async fn shows(
        &mut self,
        rule: &'static str,
        record: &LeaseRecord,
    ) -> Result<(), ErrLockConformance> {
        loop {
            match self.next(rule).await? {
                LeaseEvent::Seen(seen) if seen == *record => return Ok(()),
                LeaseEvent::Seen(seen) if seen.resource_version() != record.resource_version() => {}
                other => return Err(ErrLockConformance::new(rule, format!("{other:?} for {record:?}"))),
            }
        }
    }

    /// Waits until the watch shows the deletion of `record`'s object.
    pub(super) async fn shows_deletion(
        &mut self,
        rule: &'static str,
        record: &LeaseRecord,
    ) -> Result<(), ErrLockConformance> {
        loop {
            match self.next(rule).await? {
                LeaseEvent::Deleted(last) if last.uid() == record.uid() => return Ok(()),
                LeaseEvent::Seen(seen) if seen.uid() == record.uid() => {}
                other => {
                    return Err(ErrLockConformance::new(
                        rule,
                        format!("{other:?} for the deletion of {record:?}"),
                    ));
                }
            }
        }
    }

    async fn next(&mut self, rule: &'static str) -> Result<LeaseEvent, ErrLockConformance> {
        match timeout(PATIENCE, self.0.next()).await {
            Ok(Some(Ok(event))) => Ok(event),
            Ok(Some(Err(error))) => Err(ErrLockConformance::new(rule, format!("the watch fails: {error}"))),
            Ok(None) => Err(ErrLockConformance::new(rule, "the watch has ended")),
            Err(_) => Err(ErrLockConformance::new(rule, format!("no such event in {PATIENCE:?}"))),
        }
    }
}
