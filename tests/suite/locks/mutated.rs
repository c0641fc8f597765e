//! The conformance test finds each way to break a rule.

use super::map_lock::{Leases, MapLock};
use futures_util::{StreamExt, future::ready, stream, stream::BoxStream};
use kube_leader_gate::{
    lease::{ErrLock, ErrLockKind, LeaseEvent, LeaseName, LeaseRecord, LeaseUpdate, Lock},
    testing::lock_conformance,
};
use serde_json::Value;
use std::{future::pending, time::Duration};
use tokio::{task::yield_now, time::sleep};

/// What is wrong with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutation {
    IgnoresTheVersion,
    ReadsThenWrites,
    CreatesOverAnother,
    UpdatesWithoutWriting,
    CreatesOnUpdate,
    KeepsTheUid,
    ChangesTheUid,
    KeepsTheVersion,
    LosesForeignFields,
    IgnoresAnnotations,
    WritesNoRelease,
    CallsConflictsRefused,
    CallsConflictsNotFound,
    ReturnsTheClaimUnsaved,
    ReadsAnOldState,
    HidesTheLease,
    NeverAnswers,
    WatchFailsWithoutALease,
    WatchSkipsTheFirstState,
    WatchSkipsChanges,
    WatchSkipsDeletions,
    WatchSkipsCreations,
    WatchCutsFields,
    WatchEnds,
    WatchIsSlow,
}

use Mutation::*;

/// Each fault with a part of the rule that it breaks.
const MUTATIONS: [(Mutation, &str); 25] = [
    (IgnoresTheVersion, "update conflicts when"),
    (ReadsThenWrites, "of two updates"),
    (CreatesOverAnother, "of two creations"),
    (UpdatesWithoutWriting, "get returns the lease"),
    (CreatesOnUpdate, "update of a deleted lease"),
    (KeepsTheUid, "another uid"),
    (ChangesTheUid, "keeps the uid"),
    (KeepsTheVersion, "resource version that no lease had before"),
    (LosesForeignFields, "nothing but the claim"),
    (IgnoresAnnotations, "update writes the claim"),
    (WritesNoRelease, "update writes the claim"),
    (CallsConflictsRefused, "and the other conflicts"),
    (CallsConflictsNotFound, "and the other conflicts"),
    (ReturnsTheClaimUnsaved, "get returns the lease"),
    (ReadsAnOldState, "get returns the lease"),
    (HidesTheLease, "get returns the lease"),
    (NeverAnswers, "answers within"),
    (WatchFailsWithoutALease, "a watch can begin"),
    (WatchSkipsTheFirstState, "begins with the lease"),
    (WatchSkipsChanges, "shows each change"),
    (WatchSkipsDeletions, "shows the deletion"),
    (WatchSkipsCreations, "shows each change"),
    (WatchCutsFields, "shows each change"),
    (WatchEnds, "shows each change"),
    (WatchIsSlow, "shows each change"),
];

struct Mutated {
    inner: MapLock,
    leases: Leases,
    lease: LeaseName,
    mutation: Mutation,
}

impl Mutated {
    fn error(&self, error: ErrLock) -> ErrLock {
        match self.mutation {
            CallsConflictsRefused => ErrLock::new(ErrLockKind::Refused, error.to_string()),
            CallsConflictsNotFound => ErrLock::new(ErrLockKind::NotFound, error.to_string()),
            _ => error,
        }
    }
}

fn edited(mutation: Mutation, record: LeaseRecord) -> LeaseRecord {
    let claimed = record.transitions();
    edit(record, |object| {
        let metadata = &mut object["metadata"];
        match mutation {
            KeepsTheUid => metadata["uid"] = "u".into(),
            ChangesTheUid => metadata["uid"] = format!("uid-of-{claimed}").into(),
            KeepsTheVersion => metadata["resourceVersion"] = "1".into(),
            _ => {}
        }
    })
}

fn edit(record: LeaseRecord, edit: impl FnOnce(&mut Value)) -> LeaseRecord {
    let mut object = record.into_json();
    edit(&mut object);
    LeaseRecord::from_json(object).unwrap()
}

impl Lock for Mutated {
    type Events = BoxStream<'static, Result<LeaseEvent, ErrLock>>;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        let record = self.inner.get().await?.map(|record| edited(self.mutation, record));
        Ok(match self.mutation {
            HidesTheLease => None,
            ReadsAnOldState => record.map(|it| edit(it, |it| it["spec"]["renewTime"] = "long ago".into())),
            NeverAnswers => pending().await,
            _ => record,
        })
    }

    async fn create(&self, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        if self.mutation == CreatesOverAnother
            && let Some(seen) = self.inner.get().await?
        {
            return self.inner.update(&seen, claim).await;
        }
        self.inner
            .create(claim)
            .await
            .map(|record| edited(self.mutation, record))
            .map_err(|error| self.error(error))
    }

    async fn update(&self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        let Some(stored) = self.inner.get().await? else {
            if self.mutation == CreatesOnUpdate {
                return self.inner.create(claim).await;
            }
            return self.inner.update(seen, claim).await;
        };
        let is_newest = stored.resource_version() == edited(self.mutation, seen.clone()).resource_version()
            || stored.resource_version() == seen.resource_version();
        let mut claim = claim.clone();
        let seen = match self.mutation {
            IgnoresTheVersion => stored,
            ReadsThenWrites if is_newest => {
                yield_now().await;
                self.inner.get().await?.unwrap()
            }
            KeepsTheVersion | ChangesTheUid => edit(seen.clone(), |object| {
                object["metadata"]["resourceVersion"] = stored.resource_version().into();
            }),
            UpdatesWithoutWriting if is_newest => {
                let version = format!("{}0", stored.resource_version());
                return Ok(edit(seen.with(&claim), |it| it["metadata"]["resourceVersion"] = version.into()));
            }
            LosesForeignFields => edit(seen.clone(), |object| {
                object["metadata"].as_object_mut().unwrap().remove("ownerReferences");
            }),
            IgnoresAnnotations => {
                claim.annotations.clear();
                seen.clone()
            }
            WritesNoRelease if claim.holder.is_empty() => {
                claim.holder = "kept".into();
                seen.clone()
            }
            _ => seen.clone(),
        };
        let written = self.inner.update(&seen, &claim).await;
        if self.mutation == ReturnsTheClaimUnsaved && written.is_ok() {
            self.leases.put(&self.lease, seen.into_json());
        }
        written.map(|record| edited(self.mutation, record)).map_err(|error| self.error(error))
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        let (mutation, there) = (self.mutation, self.inner.get().await?.is_some());
        if mutation == WatchFailsWithoutALease && !there {
            return Err(ErrLock::new(ErrLockKind::NotFound, "no lease"));
        }
        let skipped = usize::from(mutation == WatchSkipsTheFirstState && there);
        let mut changes = 0;
        let events = self.inner.watch().await?.skip(skipped).filter(move |event| {
            let is_deletion = matches!(event, Ok(LeaseEvent::Deleted(_)));
            changes += 1;
            ready(match mutation {
                WatchSkipsDeletions => !is_deletion,
                WatchSkipsChanges => is_deletion || changes == 1,
                WatchSkipsCreations => changes > 1 || there,
                _ => true,
            })
        });
        let events = events.then(move |event| async move {
            if mutation == WatchIsSlow {
                sleep(Duration::from_secs(60)).await;
            }
            match event {
                Ok(LeaseEvent::Deleted(record)) => Ok(LeaseEvent::Deleted(edited(mutation, record))),
                Ok(LeaseEvent::Seen(record)) if mutation == WatchCutsFields => {
                    Ok(LeaseEvent::Seen(edit(record, |it| it["metadata"]["labels"] = Value::Null)))
                }
                Ok(LeaseEvent::Seen(record)) => Ok(LeaseEvent::Seen(edited(mutation, record))),
                other => other,
            }
        });
        Ok(if mutation == WatchEnds { stream::empty().boxed() } else { events.boxed() })
    }
}

#[tokio::test(start_paused = true)]
async fn conformance_test_finds_each_broken_rule() {
    for (mutation, rule) in MUTATIONS {
        let lease = LeaseName::new("default", "operator").unwrap();
        let leases = Leases::default();
        let lock = Mutated {
            inner: leases.lock(lease.clone()),
            leases: leases.clone(),
            lease: lease.clone(),
            mutation,
        };
        let put = async |object| leases.put(&lease, object);
        let error = lock_conformance(&lock, put, async || leases.delete(&lease))
            .await
            .expect_err(&format!("{mutation:?}"));
        let error = error.to_string();
        let (broken, found) = error.split_once("; found: ").expect("what was found");
        assert!(broken.starts_with("the lock breaks a rule: "), "{error}");
        assert!(broken.contains(rule) && !found.is_empty(), "{mutation:?}: {error}");
    }
}
