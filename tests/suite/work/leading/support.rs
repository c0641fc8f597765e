//! Candidates that run work while they lead, and a journal of which work ran when.

use crate::support::{build, builder, gated};
use futures_util::future::BoxFuture;
use kube_client::Client;
use kube_leader_gate::{
    CancellationToken, Candidate,
    election::{ElectionBuilder, ErrElectionEnded, LeaseEnd},
    leadership::{Clock, Moment, Term},
    testing::{ApiServer, TokioClock},
};
use std::{
    future::{self, Future},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

/// A running candidate.
pub struct Runs {
    pub leader: Candidate,
    pub client: Client,
    pub shutdown: CancellationToken,
    pub run: JoinHandle<Result<LeaseEnd, ErrElectionEnded>>,
}

/// Records which candidate worked when, and whether two ever worked at once.
#[derive(Clone, Default)]
pub struct Journal(Arc<Mutex<Book>>);

#[derive(Default)]
struct Book {
    present: usize,
    most: usize,
    begun: Vec<(Term, Instant)>,
    cancelled: Vec<Instant>,
    ended: Vec<Instant>,
}

/// Marks work that runs. The work has ended once this is dropped, so make it in the factory and drop it last.
pub struct Present(Journal);

/// Tokio's clock, which a test can set ahead. That looks like a freeze.
#[derive(Clone, Debug)]
pub struct SteppedClock {
    tokio: TokioClock,
    ahead: Arc<AtomicU64>,
}

/// A candidate with this work, at 15/10/2 s.
pub fn lead<F, W>(server: &ApiServer, identity: &str, work: F) -> Runs
where
    F: FnMut(CancellationToken, Term) -> W + Send + 'static,
    W: Future<Output = ()> + Send + 'static,
{
    lead_with(server, identity, builder(identity), |_, _| work)
}

/// The same with a given builder, for work that needs the gated client and the handle.
pub fn lead_with<F, W>(
    server: &ApiServer,
    identity: &str,
    builder: ElectionBuilder,
    work: impl FnOnce(Client, Candidate) -> F,
) -> Runs
where
    F: FnMut(CancellationToken, Term) -> W + Send + 'static,
    W: Future<Output = ()> + Send + 'static,
{
    let election = build(server, identity, builder).expect("a valid election");
    let (leader, client) = (election.candidate(), gated(server, &election, identity));
    let shutdown = CancellationToken::new();
    let work = work(client.clone(), leader.clone());
    let run = election.run_while_leading(shutdown.clone().cancelled_owned(), work);
    let run = tokio::spawn(async { run.await.map(|finished| finished.lease) });
    Runs { leader, client, shutdown, run }
}

// === impl Journal ===

impl Journal {
    /// Work that ends `after` it was asked to.
    pub fn obedient(
        &self,
        after: Duration,
    ) -> impl FnMut(CancellationToken, Term) -> BoxFuture<'static, ()> + Send + use<> {
        let journal = self.clone();
        move |token, term| {
            let present = journal.begin(&term);
            Box::pin(async move {
                present.until_cancelled(&token).await;
                sleep(after).await;
                drop(present);
            })
        }
    }

    /// Work that never ends.
    pub fn deaf(&self) -> impl FnMut(CancellationToken, Term) -> BoxFuture<'static, ()> + Send + use<> {
        let journal = self.clone();
        move |token, term| {
            let present = journal.begin(&term);
            Box::pin(async move {
                present.until_cancelled(&token).await;
                future::pending::<()>().await;
                drop(present);
            })
        }
    }

    pub fn begin(&self, term: &Term) -> Present {
        let mut book = self.0.lock().unwrap();
        book.present += 1;
        book.most = book.most.max(book.present);
        book.begun.push((term.clone(), Instant::now()));
        drop(book);
        Present(self.clone())
    }

    /// How much work runs now.
    pub fn present(&self) -> usize {
        self.0.lock().unwrap().present
    }

    /// The most work that ran at once.
    pub fn most(&self) -> usize {
        self.0.lock().unwrap().most
    }

    /// The terms in which work began, and when.
    pub fn begun(&self) -> Vec<(Term, Instant)> {
        self.0.lock().unwrap().begun.clone()
    }

    pub fn cancelled(&self) -> Vec<Instant> {
        self.0.lock().unwrap().cancelled.clone()
    }

    pub fn ended(&self) -> Vec<Instant> {
        self.0.lock().unwrap().ended.clone()
    }
}

// === impl Present ===

impl Present {
    /// Waits for the token, and notes when it came.
    pub async fn until_cancelled(&self, token: &CancellationToken) {
        token.cancelled().await;
        self.0.0.lock().unwrap().cancelled.push(Instant::now());
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        let mut book = self.0.0.lock().unwrap();
        book.present -= 1;
        book.ended.push(Instant::now());
    }
}

// === impl SteppedClock ===

impl SteppedClock {
    pub fn new() -> Self {
        Self { tokio: TokioClock::new(), ahead: Arc::default() }
    }

    pub fn step(&self, by: Duration) {
        self.ahead.fetch_add(u64::try_from(by.as_nanos()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for SteppedClock {
    fn now(&self) -> Moment {
        self.tokio.now().saturating_add(Duration::from_nanos(self.ahead.load(Ordering::SeqCst)))
    }
}
