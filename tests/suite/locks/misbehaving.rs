//! An election over a lock that misbehaves: the gate stays closed or closes, and the candidate goes on contending. A
//! panic of the lock ends the election, and the handle reports that.

use super::map_lock::{Leases, MapLock};
use futures_util::{StreamExt, stream, stream::BoxStream};
use kube_leader_gate::{
    Election, Identity, LeaseTiming,
    election::{ErrUnhealthy, Running},
    lease::{ErrLock, ErrLockKind, LeaseEvent, LeaseName, LeaseRecord, LeaseUpdate, Lock},
    testing::TokioClock,
};
use serde_json::Value;
use std::{
    convert::Infallible,
    future::pending,
    panic::Location,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// The time between two checks of the state.
const STEP: Duration = Duration::from_millis(100);
/// How long the gate must stay closed: many lease durations.
const LONG: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Get,
    Create,
    Update,
    Watch,
    Event,
    Reconnect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Misbehaviour {
    Panics(Call),
    Hangs(Call),
    Fails(Call, ErrLockKind),
    /// Answers writes with another candidate's lease, without writing.
    AnswersAnotherHolder,
    /// Answers writes with the claim in another lease.
    AnswersAnotherLease,
    /// Answers writes with the claim in an object of another uid.
    AnswersAnotherUid,
    /// Answers updates with the claim in the old version, without writing.
    AnswersTheSameVersion,
    /// Answers writes with the lease before the write.
    AnswersAnOldState,
    /// Answers updates with the claim, in a version from long before, without writing.
    AnswersAnOldVersion,
    /// Reads another lease, which this candidate holds.
    ReadsAnotherLease,
    /// Never finds the lease.
    ReadsNothing,
    /// Watches another lease, which another candidate holds.
    WatchesAnotherLease,
}

use Misbehaviour::*;

struct Misbehaving {
    inner: MapLock,
    how: Misbehaviour,
    begun: Arc<AtomicBool>,
}

impl Misbehaving {
    fn is(&self, how: Misbehaviour) -> bool {
        self.begun.load(Ordering::SeqCst) && self.how == how
    }

    async fn called(&self, call: Call) -> Result<(), ErrLock> {
        // The client replaces its connection after a call that hangs.
        if self.is(Hangs(call)) || self.is(Panics(Call::Reconnect)) && call == Call::Update {
            pending::<()>().await;
        }
        assert!(!self.is(Panics(call)), "{call:?}");
        match self.how {
            // A leader reads after a conflict.
            Panics(Call::Get) if call == Call::Update && self.is(self.how) => {
                Err(ErrLock::new(ErrLockKind::Conflict, "no"))
            }
            Fails(failing, kind) if failing == call && self.is(self.how) => Err(ErrLock::new(kind, "no")),
            _ => Ok(()),
        }
    }

    /// The answer that replaces writing `made` over `before`.
    fn answer(&self, made: &LeaseRecord, before: Option<&LeaseRecord>) -> Option<LeaseRecord> {
        if !self.begun.load(Ordering::SeqCst) {
            return None;
        }
        let edited = |edit: fn(&mut Value)| Some(edited(made, edit));
        match self.how {
            AnswersAnotherHolder => edited(|object| object["spec"]["holderIdentity"] = "other".into()),
            AnswersAnotherLease => edited(|object| object["metadata"]["name"] = "other".into()),
            AnswersAnotherUid if before.is_some() => {
                edited(|object| object["metadata"]["uid"] = "other".into())
            }
            AnswersTheSameVersion => Some(made.clone()).filter(|_| before.is_some()),
            AnswersAnOldState => before.cloned(),
            AnswersAnOldVersion if before.is_some() => {
                edited(|object| object["metadata"]["resourceVersion"] = "0".into())
            }
            _ => None,
        }
    }
}

fn edited(record: &LeaseRecord, edit: fn(&mut Value)) -> LeaseRecord {
    let mut object = record.clone().into_json();
    edit(&mut object);
    LeaseRecord::from_json(object).unwrap()
}

fn of_another_lease(record: &LeaseRecord, holder: &str) -> LeaseRecord {
    let mut object = record.clone().into_json();
    object["metadata"]["name"] = "other".into();
    object["spec"]["holderIdentity"] = holder.into();
    LeaseRecord::from_json(object).unwrap()
}

impl Lock for Misbehaving {
    type Events = BoxStream<'static, Result<LeaseEvent, ErrLock>>;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        self.called(Call::Get).await?;
        let record = self.inner.get().await?;
        Ok(if self.is(ReadsAnotherLease) {
            record.map(|record| of_another_lease(&record, "a"))
        } else {
            record.filter(|_| !self.is(ReadsNothing))
        })
    }

    async fn create(&self, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        self.called(Call::Create).await?;
        let made = self.inner.create(claim).await?;
        Ok(self.answer(&made, None).unwrap_or(made))
    }

    async fn update(&self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        self.called(Call::Update).await?;
        match self.answer(&seen.with(claim), Some(seen)) {
            Some(answer) => Ok(answer),
            None => self.inner.update(seen, claim).await,
        }
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        self.called(Call::Watch).await?;
        let events = self.inner.watch().await?;
        if self.how == WatchesAnotherLease {
            let begun = self.begun.clone();
            let other = move |event| match event {
                Ok(LeaseEvent::Seen(record)) if begun.load(Ordering::SeqCst) => {
                    Ok(LeaseEvent::Seen(of_another_lease(&record, "b")))
                }
                event => event,
            };
            return Ok(events.map(other).boxed());
        }
        Ok(match self.how {
            Panics(Call::Event) if self.is(self.how) => stream::poll_fn(|_| panic!("an event")).boxed(),
            Hangs(Call::Event) if self.is(self.how) => stream::pending().boxed(),
            Fails(Call::Event, kind) if self.is(self.how) => {
                stream::repeat_with(move || Err(ErrLock::new(kind, "no"))).boxed()
            }
            _ => events.boxed(),
        })
    }

    fn reconnect(&self) -> Option<&'static str> {
        assert!(!self.is(Panics(Call::Reconnect)), "reconnect");
        None
    }
}

fn lease() -> LeaseName {
    LeaseName::new("default", "operator").unwrap()
}

/// A candidate whose lock begins to misbehave when the flag is set.
fn contend(leases: &Leases, how: Misbehaviour, begun: &Arc<AtomicBool>) -> Running {
    Election::builder("default", "operator")
        .identity(Identity::new("a").unwrap())
        .timing(LeaseTiming::fast())
        .clock(Arc::new(TokioClock::new()))
        .build_with(|lease| {
            Ok::<_, Infallible>(Misbehaving { inner: leases.lock(lease), how, begun: begun.clone() })
        })
        .unwrap()
        .start()
}

/// Waits until the condition holds, with a bound.
#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) -> impl Future<Output = ()> {
    let (what, place) = (what.to_owned(), Location::caller());
    async move {
        let waiting = async {
            while !holds() {
                sleep(STEP).await;
            }
        };
        assert!(timeout(LONG, waiting).await.is_ok(), "{what}, at {place}");
    }
}

#[tokio::test(start_paused = true)]
async fn gate_never_opens_over_lock_that_answers_garbage() {
    let garbage = [
        AnswersAnotherHolder,
        AnswersAnotherLease,
        Fails(Call::Create, ErrLockKind::Conflict),
        Fails(Call::Get, ErrLockKind::NotFound),
        Hangs(Call::Get),
        Hangs(Call::Create),
    ];
    for how in garbage {
        let (leases, begun) = (Leases::default(), Arc::new(AtomicBool::new(true)));
        let a = contend(&leases, how, &begun);
        let looking = async {
            loop {
                assert!(!a.candidate().can_write(), "{how:?}");
                sleep(STEP).await;
            }
        };
        timeout(LONG, looking).await.unwrap_err();
        assert_eq!(a.candidate().check(LONG), Ok(()), "{how:?}: it contends on");
        begun.store(false, Ordering::SeqCst);
        until("it leads once the lock behaves", || a.candidate().can_write()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn gate_closes_when_leaders_lock_answers_garbage() {
    for how in [
        AnswersAnotherHolder,
        AnswersAnotherLease,
        AnswersAnotherUid,
        AnswersTheSameVersion,
        AnswersAnOldState,
        AnswersAnOldVersion,
        Hangs(Call::Update),
        Fails(Call::Update, ErrLockKind::Conflict),
        Fails(Call::Update, ErrLockKind::NotFound),
    ] {
        let (leases, begun) = (Leases::default(), Arc::default());
        let a = contend(&leases, how, &begun);
        until("the candidate leads", || a.candidate().can_write()).await;
        begun.store(true, Ordering::SeqCst);
        timeout(
            LeaseTiming::fast().renew_deadline() + STEP,
            until("it closes", || !a.candidate().can_write()),
        )
        .await
        .unwrap_or_else(|_| panic!("{how:?}: the gate is open past the deadline"));
        assert_eq!(a.candidate().check(LONG), Ok(()), "{how:?}: it contends on");
        begun.store(false, Ordering::SeqCst);
        until("it leads again once the lock behaves", || a.candidate().can_write()).await;
    }
}

/// Useless reads and watches do not end a leader's term: the server answers its renewals.
#[tokio::test(start_paused = true)]
async fn leader_keeps_term_while_reads_and_watches_fail() {
    for how in [
        WatchesAnotherLease,
        Hangs(Call::Watch),
        Hangs(Call::Event),
        Hangs(Call::Get),
        Fails(Call::Watch, ErrLockKind::BadAnswer),
        Fails(Call::Event, ErrLockKind::BadAnswer),
    ] {
        let (leases, begun) = (Leases::default(), Arc::default());
        let a = contend(&leases, how, &begun);
        until("the candidate leads", || a.candidate().can_write()).await;
        let term = a.candidate().term();
        begun.store(true, Ordering::SeqCst);
        let looking = async {
            loop {
                assert!(a.candidate().can_write() && a.candidate().term() == term, "{how:?}");
                sleep(STEP).await;
            }
        };
        timeout(LONG, looking).await.unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn s10_lock_panic_ends_followers_election() {
    for call in [Call::Get, Call::Create, Call::Watch, Call::Event] {
        let a = contend(&Leases::default(), Panics(call), &Arc::new(AtomicBool::new(true)));
        ends(&a, call).await;
    }
}

#[tokio::test(start_paused = true)]
async fn s10_lock_panic_closes_leaders_gate() {
    for call in [Call::Get, Call::Create, Call::Update, Call::Reconnect] {
        let (leases, begun) = (Leases::default(), Arc::default());
        let a = contend(&leases, Panics(call), &begun);
        until("the candidate leads", || a.candidate().can_write()).await;
        begun.store(true, Ordering::SeqCst);
        if call == Call::Create {
            leases.delete(&lease());
        }
        ends(&a, call).await;
    }
}

async fn ends(running: &Running, call: Call) {
    let leader = running.candidate();
    until("the election ends", || leader.check(LONG).is_err()).await;
    assert_eq!(leader.check(LONG), Err(ErrUnhealthy::Ended), "{call:?}");
    assert!(!leader.can_write(), "{call:?}");
    leader.ended().await.unwrap_err();
}
