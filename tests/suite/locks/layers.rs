//! Layers that wrap the lock of an election: what they may do, and what the election tells them.

use crate::support::{
    FIRST, LEASE, SOON, begin_write, build, builder, candidate, gated, releases, until, within, write,
};
use kube_client::Client;
use kube_leader_gate::{
    Election,
    election::{ElectionBuilder, ErrBuild},
    extension::{LockContext, LockLayer, Trouble},
    leadership::Term,
    lease::{BoxLock, ErrLock, ErrLockKind, LeasePool, LeaseRecord, LeaseUpdate, Lock},
    testing::{ApiServer, Fault},
};
use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// Writes an annotation into each claim, and keeps what the election tells it.
#[derive(Clone, Default)]
struct Marks {
    mark: &'static str,
    told: Arc<Mutex<Option<(LockContext, Trouble)>>>,
}

struct Marking {
    inner: BoxLock,
    mark: &'static str,
}

impl LockLayer for Marks {
    type Lock = Marking;
    type Error = fmt::Error;

    fn layer(self, inner: BoxLock, context: &LockContext) -> Result<Marking, fmt::Error> {
        *self.told.lock().unwrap() = Some((context.clone(), context.trouble("the mark is wrong")));
        if self.mark.is_empty() { Err(fmt::Error) } else { Ok(Marking { inner, mark: self.mark }) }
    }
}

impl Marking {
    fn marked(&self, claim: &LeaseUpdate) -> LeaseUpdate {
        let mut claim = claim.clone();
        let marks = claim.annotations.get("mark").cloned().flatten().unwrap_or_default();
        claim.annotations.insert("mark", Some(format!("{marks}{}", self.mark)));
        claim
    }
}

impl Lock for Marking {
    type Events = <BoxLock as Lock>::Events;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        self.inner.get().await
    }

    async fn create(&self, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        self.inner.create(&self.marked(claim)).await
    }

    async fn update(&self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        self.inner.update(seen, &self.marked(claim)).await
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        self.inner.watch().await
    }

    fn reconnect(&self) -> Option<&'static str> {
        self.inner.reconnect()
    }
}

fn marked(server: &ApiServer, layers: impl IntoIterator<Item = Marks>) -> Result<Election, ErrBuild> {
    let builder = layers.into_iter().fold(builder("a"), ElectionBuilder::layer_lock);
    let service = server.service().user("a");
    builder.build_in(&LeasePool::over(move || Ok(Client::new(service.clone(), "default"))).expect("a client"))
}

#[tokio::test(start_paused = true)]
async fn later_layer_wraps_earlier_ones() {
    let server = ApiServer::new();
    let layers = ["inner", "outer "].map(|mark| Marks { mark, ..Marks::default() });
    let a = marked(&server, layers).unwrap().start();
    within(FIRST, "the candidate leads", a.candidate().elected()).await;
    assert_eq!(server.object(LEASE).unwrap()["metadata"]["annotations"]["mark"], "outer inner");
    a.stop().await;
}

#[tokio::test]
async fn refusing_layer_refuses_the_build() {
    let built = marked(&ApiServer::new(), [Marks::default()]);
    assert!(built.unwrap_err().to_string().starts_with("cannot make the lock of the election: "));
}

#[tokio::test(start_paused = true)]
async fn trouble_of_a_layer_is_the_elections_until_it_is_over() {
    let server = ApiServer::new();
    let layer = Marks { mark: "x", ..Marks::default() };
    let a = marked(&server, [layer.clone()]).unwrap().start();
    within(FIRST, "the candidate leads", a.candidate().elected()).await;
    let (_, trouble) = layer.told.lock().unwrap().take().unwrap();
    trouble.raise("color", &"it is red");
    assert_eq!(a.candidate().trouble().as_deref(), Some("the mark is wrong: it is red"));
    assert!(a.candidate().is_leader(), "trouble of a layer ends no term");
    trouble.settle();
    assert_eq!(a.candidate().trouble(), None);
    trouble.raise("color", &"it is red");
    drop(trouble);
    assert_eq!(a.candidate().trouble(), None);
    a.stop().await;
}

/// Withholds the answer to the first claim.
struct Withholds;

struct Withholding {
    inner: BoxLock,
    context: LockContext,
    answers: AtomicBool,
}

impl LockLayer for Withholds {
    type Lock = Withholding;
    type Error = fmt::Error;

    fn layer(self, inner: BoxLock, context: &LockContext) -> Result<Withholding, fmt::Error> {
        Ok(Withholding { inner, context: context.clone(), answers: AtomicBool::new(false) })
    }
}

impl Lock for Withholding {
    type Events = <BoxLock as Lock>::Events;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        self.inner.get().await
    }

    async fn create(&self, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        let record = self.inner.create(claim).await?;
        if self.answers.swap(true, Ordering::SeqCst) {
            return Ok(record);
        }
        self.context.candidate().give_way_in(&Term::new(record.uid(), record.transitions()));
        Err(ErrLock::new(ErrLockKind::Withheld, "not yet"))
    }

    async fn update(&self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        self.inner.update(seen, claim).await
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        self.inner.watch().await
    }
}

/// A candidate whose first claim gets no answer, and a client behind its gate.
pub fn withholding(server: &ApiServer) -> (Election, Client) {
    let election = build(server, "a", builder("a").layer_lock(Withholds)).expect("a valid election");
    let client = gated(server, &election, "a");
    (election, client)
}

/// The gate opens in a later term.
#[tokio::test(start_paused = true)]
async fn withheld_claim_is_given_away_and_opens_no_gate() {
    let server = ApiServer::new();
    let (election, client) = withholding(&server);
    let a = election.start();
    until(FIRST, "the lease names it", || server.object(LEASE).is_some()).await;
    write(&client).await.unwrap_err();
    until(FIRST, "it gives the lease away", || !releases(&server, "a").is_empty()).await;
    assert_eq!((a.candidate().is_leader(), a.candidate().trouble()), (false, None), "the layer tells why");
    let rested = Instant::now();
    within(Duration::from_secs(3), "it leads", a.candidate().elected()).await;
    assert!(rested.elapsed() + SOON >= Duration::from_secs(2), "{:?}", rested.elapsed());
    assert_eq!(a.candidate().term().unwrap().transitions(), 1);
    a.stop().await;
}

/// The release waits for an admitted write. The other candidate leads, and this one contends on.
#[tokio::test(start_paused = true)]
async fn s4_a_layer_that_gives_way_waits_for_writes() {
    let server = ApiServer::new();
    let layer = Marks { mark: "x", ..Marks::default() };
    let election = marked(&server, [layer.clone()]).unwrap();
    let client = gated(&server, &election, "a");
    let a = election.start();
    within(FIRST, "the candidate leads", a.candidate().elected()).await;
    let b = candidate(&server, "b").start();
    let _slow = server.inject(Fault::delay_before(Duration::from_secs(1)).resource("tokenreviews"));
    let writing = begin_write(a.candidate(), &client).await;
    let (context, _trouble) = layer.told.lock().unwrap().take().unwrap();
    context.candidate().give_way();
    until(SOON, "the gate is closed", || !a.candidate().can_write()).await;
    assert!(a.candidate().is_leader() && !b.candidate().is_leader());
    within(Duration::from_secs(3), "b leads", b.candidate().elected()).await;
    writing.await.unwrap().expect("the write has finished");
    b.stop().await;
    within(Duration::from_secs(3), "a leads again", a.candidate().elected()).await;
    a.stop().await;
}
