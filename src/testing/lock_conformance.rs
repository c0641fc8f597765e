//! Checks whether a lock keeps the rules that an election relies on.

use super::conformance_watch::{ErrLockConformance, Outcome, PATIENCE, View, broken};
use crate::lease::{ErrLock, ErrLockKind, LeaseRecord, LeaseUpdate, Lock};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt, future::Future};
use tokio::time::timeout;

const GETS: &str = "get returns the lease as the last write returned it";
const CREATES: &str = "create makes a lease with the claim in it";
const CREATE_CONFLICTS: &str = "create conflicts with a lease that exists";
const ONE_CREATES: &str = "of two creations at the same time, one succeeds and the other conflicts";
const UPDATES: &str = "update writes the claim, and keeps the uid";
const UPDATE_CONFLICTS: &str = "update conflicts when the resource version is not the newest";
const ONE_UPDATES: &str = "of two updates of one version, one succeeds and the other conflicts";
const UPDATES_NOTHING: &str = "update of a deleted lease fails with a conflict or with not found";
const PUTS: &str = "the given functions put and delete work";
const SHOWS: &str = "a watch shows each change, whole";
const SHOWS_DELETION: &str = "a watch shows the deletion";

/// An annotation that claims write and remove.
const NOTE: &str = "kube-leader-gate/conformance";
/// The fields of the spec that a claim writes.
const CLAIMED: [&str; 5] =
    ["holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"];

/// Checks that `lock` keeps the rules of [`Lock`], on a lease that does not exist yet: compare-and-swap, also of two
/// candidates at the same time; deletion and creation; fields that no claim owns; and what a watch shows. A call or an
/// event that takes more than 10 s also breaks a rule.
///
/// `put` stands for a client that is not a candidate. It replaces the lease with an object, whatever version the lease
/// has. `delete` deletes the lease. Both return when that is done.
///
/// Not cancel-safe: if the future is dropped, the lease stays as it is. Delete it before the next check.
///
/// # Errors
/// [`ErrLockConformance`] for the first rule that the lock breaks. The lease then stays as it is. Otherwise the check
/// deletes it.
///
/// ```
/// # #[allow(dead_code)]
/// # mod map_lock {
#[doc = include_str!("../../examples/map_lock/map_lock.rs")]
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
    Trial { lock, put, delete, versions: Vec::new(), claims: 0 }.run().await
}

struct Trial<'a, L, P, D> {
    lock: &'a L,
    put: P,
    delete: D,
    /// The versions that have been seen.
    versions: Vec<String>,
    /// How many claims were made.
    claims: u64,
}

impl<L: Lock, P: AsyncFn(Value), D: AsyncFn()> Trial<'_, L, P, D> {
    async fn run(mut self) -> Outcome {
        ensure("get returns none if there is no lease", self.get().await?.is_none(), &"a lease")?;
        let mut view = self.watch().await?;

        let first = self.create().await?;
        view.shows(SHOWS, &first).await?;
        let second = self.update(&first).await?;
        view.shows(SHOWS, &second).await?;
        self.conflicts(&first, &second).await?;
        let third = self.race(Some(&second)).await?;
        view.shows(SHOWS, &third).await?;

        let changed = self.change(&third).await?;
        view.shows(SHOWS, &changed).await?;
        self.conflicts(&third, &changed).await?;
        let last = self.keep(&changed).await?;
        view.shows(SHOWS, &last).await?;

        let mut late = self.watch().await?;
        late.shows("a watch begins with the lease as it is", &last).await?;
        (self.delete)().await;
        ensure(PUTS, self.get().await?.is_none(), &"get still returns the lease after delete")?;
        view.shows_deletion(SHOWS_DELETION, &last).await?;
        late.shows_deletion(SHOWS_DELETION, &last).await?;
        let claim = self.claim();
        let gone = self.call(self.lock.update(&last, &claim)).await?;
        refused(UPDATES_NOTHING, &gone, &[ErrLockKind::Conflict, ErrLockKind::NotFound])?;
        ensure(UPDATES_NOTHING, self.get().await?.is_none(), &"a lease was created")?;

        let again = self.create().await?;
        ensure("a lease that was created again has another uid", again.uid() != last.uid(), &again.uid())?;
        view.shows(SHOWS, &again).await?;
        self.conflicts(&last, &again).await?;

        self.lock.reconnect();
        ensure(
            "reconnect has no visible effect",
            self.get().await?.as_ref() == Some(&again),
            &"another lease, or none",
        )?;
        self.update(&again).await?;
        (self.delete)().await;
        Ok(())
    }

    async fn create(&mut self) -> Outcome<LeaseRecord> {
        let record = self.race(None).await?;
        let claim = self.claim();
        let late = self.call(self.lock.create(&claim)).await?;
        refused(CREATE_CONFLICTS, &late, &[ErrLockKind::Conflict])?;
        self.is_stored(CREATE_CONFLICTS, &record).await?;
        Ok(record)
    }

    /// Two candidates create the lease at the same time, or update `seen`.
    async fn race(&mut self, seen: Option<&LeaseRecord>) -> Outcome<LeaseRecord> {
        let (one, writes) = if seen.is_some() { (ONE_UPDATES, UPDATES) } else { (ONE_CREATES, CREATES) };
        let (a, b) = (self.claim(), self.claim());
        let write = async |claim| match seen {
            Some(seen) => self.lock.update(seen, claim).await,
            None => self.lock.create(claim).await,
        };
        let (made_a, made_b) = tokio::join!(self.call(write(&a)), self.call(write(&b)));
        let (record, claim) = match (made_a?, made_b?) {
            (Ok(record), Err(error)) if error.kind() == ErrLockKind::Conflict => (record, a),
            (Err(error), Ok(record)) if error.kind() == ErrLockKind::Conflict => (record, b),
            both => return Err(broken(one, &format_args!("{both:?}"))),
        };
        ensure(writes, holds(&record, &claim), &record)?;
        self.is_written(&record).await?;
        Ok(record)
    }

    async fn update(&mut self, seen: &LeaseRecord) -> Outcome<LeaseRecord> {
        let claim = self.claim();
        self.write(seen, &claim).await
    }

    async fn write(&mut self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Outcome<LeaseRecord> {
        let updated = self.call(self.lock.update(seen, claim)).await?;
        let record = updated.map_err(|error| broken(UPDATES, &error))?;
        ensure(UPDATES, holds(&record, claim) && record.uid() == seen.uid(), &record)?;
        self.is_written(&record).await?;
        Ok(record)
    }

    /// An update of a stale version is refused, and changes nothing.
    async fn conflicts(&mut self, stale: &LeaseRecord, stored: &LeaseRecord) -> Outcome {
        let claim = self.claim();
        let updated = self.call(self.lock.update(stale, &claim)).await?;
        refused(UPDATE_CONFLICTS, &updated, &[ErrLockKind::Conflict])?;
        self.is_stored(UPDATE_CONFLICTS, stored).await
    }

    /// Another client adds fields that no candidate owns.
    async fn change(&mut self, record: &LeaseRecord) -> Outcome<LeaseRecord> {
        let mut object = record.clone().into_json();
        let owner = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "uid": "u" });
        for (key, value) in [
            ("labels", json!({ "example.com/team": "a" })),
            ("annotations", json!({ "example.com/note": "b" })),
            ("ownerReferences", json!([owner])),
        ] {
            object["metadata"][key] = value;
        }
        (self.put)(object).await;
        let changed = self.get().await?.ok_or_else(|| broken(PUTS, &"no lease"))?;
        self.is_new(&changed)?;
        let metadata = changed.clone().into_json()["metadata"].take();
        let there = ["labels", "annotations", "ownerReferences"].iter().all(|key| !metadata[key].is_null());
        ensure(PUTS, there && changed.uid() == record.uid(), &changed)?;
        Ok(changed)
    }

    /// Updates write an annotation, remove it and release the lease. Each keeps everything else.
    async fn keep(&mut self, changed: &LeaseRecord) -> Outcome<LeaseRecord> {
        let mut seen = changed.clone();
        for (holder, note) in [("a", Some("here".to_owned())), ("", None)] {
            let mut claim = self.claim();
            holder.clone_into(&mut claim.holder);
            claim.annotations.insert(NOTE, note.clone());
            seen = self.write(&seen, &claim).await?;
            let noted = seen.annotation(NOTE).and_then(Value::as_str).map(str::to_owned);
            ensure(UPDATES, noted == note, &seen)?;
            ensure(
                "update changes nothing but the claim",
                foreign(&seen) == foreign(changed),
                &format_args!("{seen:?} for {changed:?}"),
            )?;
        }
        Ok(seen)
    }

    /// Checks that the result of a write is new, and that the store has it.
    async fn is_written(&mut self, record: &LeaseRecord) -> Outcome {
        self.is_new(record)?;
        self.is_stored(GETS, record).await
    }

    fn is_new(&mut self, record: &LeaseRecord) -> Outcome {
        let version = record.resource_version();
        let number = |text: &str| text.parse::<u64>().ok();
        let grows = |before: &String| number(before).zip(number(version)).is_none_or(|(old, new)| old < new);
        let new = self.versions.iter().all(|before| before != version && grows(before));
        ensure(
            "each write gives the lease a resource version that no lease had before, and a number grows",
            new,
            &format_args!("{version:?} after {:?}", self.versions),
        )?;
        self.versions.push(version.to_owned());
        Ok(())
    }

    async fn is_stored(&self, rule: &'static str, record: &LeaseRecord) -> Outcome {
        let stored = self.get().await?;
        ensure(rule, stored.as_ref() == Some(record), &format_args!("{stored:?} for {record:?}"))
    }

    async fn get(&self) -> Outcome<Option<LeaseRecord>> {
        let read = self.call(self.lock.get()).await?;
        read.map_err(|error| broken(GETS, &error))
    }

    async fn watch(&self) -> Outcome<View<L::Events>> {
        let events = self.call(self.lock.watch()).await?;
        events.map(View).map_err(|error| broken("a watch can begin, also if there is no lease", &error))
    }

    async fn call<T>(&self, call: impl Future<Output = T>) -> Outcome<T> {
        timeout(PATIENCE, call).await.map_err(|_| broken("a call answers within 10 s", &"no answer"))
    }

    /// Makes a claim that differs from all earlier ones.
    fn claim(&mut self) -> LeaseUpdate {
        self.claims += 1;
        let time = format!("2026-01-02T03:04:{:02}.000000Z", self.claims);
        LeaseUpdate {
            holder: format!("candidate-{}", self.claims),
            duration_seconds: 15,
            acquire_time: time.clone(),
            renew_time: time,
            transitions: self.claims,
            annotations: BTreeMap::new(),
            new_metadata: serde_json::Map::new(),
        }
    }
}

fn ensure(rule: &'static str, holds: bool, found: &dyn fmt::Debug) -> Outcome {
    if holds { Ok(()) } else { Err(broken(rule, &format_args!("{found:?}"))) }
}

fn refused(rule: &'static str, outcome: &Result<LeaseRecord, ErrLock>, kinds: &[ErrLockKind]) -> Outcome {
    let is_refused = outcome.as_ref().is_err_and(|error| kinds.contains(&error.kind()));
    ensure(rule, is_refused, outcome)
}

fn holds(record: &LeaseRecord, claim: &LeaseUpdate) -> bool {
    record.holder().unwrap_or_default() == claim.holder
        && record.duration().is_some_and(|duration| duration.as_secs() == claim.duration_seconds)
        && record.acquire_time() == Some(&claim.acquire_time)
        && record.renew_time() == Some(&claim.renew_time)
        && record.transitions() == claim.transitions
}

/// The fields that no claim writes, and that the API server does not change with each write.
fn foreign(record: &LeaseRecord) -> Value {
    let mut object = record.clone().into_json();
    remove(&mut object["spec"], &CLAIMED);
    remove(&mut object["metadata"], &["resourceVersion", "managedFields", "generation"]);
    remove(&mut object["metadata"]["annotations"], &[NOTE]);
    object
}

fn remove(object: &mut Value, keys: &[&str]) {
    if let Some(object) = object.as_object_mut() {
        object.retain(|key, _| !keys.contains(&key.as_str()));
    }
}
