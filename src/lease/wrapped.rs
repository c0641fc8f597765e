//! What an election puts around its lock: it closes the gate before a release.

use super::{error::ErrLock, lock::Lock, record::LeaseRecord, update::LeaseUpdate};
use crate::leadership::{Closer, Grantor, Loss};

/// Wraps a [`Lock`]. If an update empties the holder, this lock first closes the gate, and then sends the update
/// ([rule S3](crate::guide::guarantees#s3-the-gate-closes-before-a-release)). The gate stays closed even if the update fails.
/// Other calls are not changed.
#[derive(Clone, Debug)]
pub struct ReleaseLock<L> {
    inner: L,
    gate: Closer,
}

impl<L> ReleaseLock<L> {
    /// Wraps `inner`, and ends the current term of `grantor` before each release.
    pub fn new(inner: L, grantor: &Grantor) -> Self {
        Self { inner, gate: grantor.closer() }
    }
}

impl<L: Lock> Lock for ReleaseLock<L> {
    type Events = L::Events;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        self.inner.get().await
    }

    async fn create(&self, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        self.inner.create(claim).await
    }

    async fn update(&self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        if claim.holder.is_empty() {
            self.gate.revoke(Loss::Released);
        }
        self.inner.update(seen, claim).await
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        self.inner.watch().await
    }

    fn reconnect(&self) -> Option<&'static str> {
        self.inner.reconnect()
    }
}

#[cfg(test)]
mod tests {
    //! The cases of Pinniped's tests: after a release, the gate is closed, even if the call fails.

    use super::*;
    use crate::{
        leadership::{Grant, Leadership, Term},
        lease::{ErrLockKind, LeaseEvent},
    };
    use futures_util::stream::Empty;
    use serde_json::json;
    use std::{future, sync::Mutex, time::Duration};

    /// A lock that records at each update whether the gate admits writes. It then fails, or never answers.
    struct Witness {
        leadership: Leadership,
        could_write: Mutex<Vec<bool>>,
        answers: bool,
    }

    impl Lock for Witness {
        type Events = Empty<Result<LeaseEvent, ErrLock>>;

        async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
            Ok(None)
        }

        async fn create(&self, _: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
            Err(ErrLock::new(ErrLockKind::Refused, "no"))
        }

        async fn update(&self, _: &LeaseRecord, _: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
            self.could_write.lock().unwrap().push(self.leadership.can_write());
            if !self.answers {
                future::pending::<()>().await;
            }
            Err(ErrLock::new(ErrLockKind::Refused, "no"))
        }

        async fn watch(&self) -> Result<Self::Events, ErrLock> {
            Err(ErrLock::new(ErrLockKind::Refused, "no"))
        }
    }

    fn leading(answers: bool) -> (ReleaseLock<Witness>, Leadership, (Grantor, Grant)) {
        let grantor = Grantor::new();
        let leadership = grantor.leadership();
        let deadline = grantor.now().saturating_add(Duration::from_secs(10));
        let grant = grantor.grant(Term::new("u", 1), deadline).unwrap();
        let witness = Witness { leadership: leadership.clone(), could_write: Mutex::default(), answers };
        (ReleaseLock::new(witness, &grantor), leadership, (grantor, grant))
    }

    fn record() -> LeaseRecord {
        LeaseRecord::from_json(json!({ "metadata": { "uid": "u", "resourceVersion": "1" } })).unwrap()
    }

    fn claim(holder: &str) -> LeaseUpdate {
        let time = || "now".to_owned();
        let (acquire_time, renew_time) = (time(), time());
        let annotations = std::collections::BTreeMap::new();
        LeaseUpdate {
            holder: holder.into(),
            duration_seconds: 15,
            acquire_time,
            renew_time,
            transitions: 1,
            annotations,
            new_metadata: serde_json::Map::new(),
        }
    }

    #[tokio::test]
    async fn s3_the_gate_closes_before_a_failing_release() {
        let (lock, leadership, _owner) = leading(true);
        lock.update(&record(), &claim("")).await.unwrap_err();
        assert_eq!(*lock.inner.could_write.lock().unwrap(), [false]);
        assert!(!leadership.is_leader());
        assert_eq!(leadership.state().lost, Some(Loss::Released));
    }

    #[tokio::test(start_paused = true)]
    async fn s3_the_gate_closes_before_a_dropped_release() {
        let (lock, leadership, _owner) = leading(false);
        let given_up = tokio::time::timeout(Duration::from_secs(1), lock.update(&record(), &claim(""))).await;
        assert!(given_up.is_err());
        assert_eq!(*lock.inner.could_write.lock().unwrap(), [false]);
        assert!(!leadership.is_leader());
    }

    #[tokio::test]
    async fn a_failed_renewal_keeps_the_gate_open() {
        let (lock, leadership, _owner) = leading(true);
        lock.update(&record(), &claim("me")).await.unwrap_err();
        assert_eq!(*lock.inner.could_write.lock().unwrap(), [true]);
        assert!(leadership.can_write());
    }
}
