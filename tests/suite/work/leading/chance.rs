//! Rule S11 with random events: the work of one process never overlaps, whatever happens to the lease and to the
//! work.

use super::support::{Journal, Present, Runs, SteppedClock, lead_with};
use crate::support::{LEASE, builder, pass, steal, until, within, write};
use fastrand::Rng;
use futures_util::future::BoxFuture;
use kube_client::Client;
use kube_leader_gate::{
    CancellationToken, Candidate,
    leadership::Term,
    testing::{ApiServer, Fault},
};
use std::{
    collections::BTreeSet,
    future,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::sleep;

const SEEDS: u64 = 30;
const STEPS: usize = 40;

/// Names the seed that failed.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the script of seed {} failed", self.0);
        }
    }
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "in the drop");
    }
}

/// What happened over all seeds. A script in which something never happens proves nothing about it.
type Seen = Arc<Mutex<BTreeSet<&'static str>>>;

/// A candidate whose work behaves randomly.
fn candidate(server: &ApiServer, identity: &str, seed: u64, known: &Seen) -> (Runs, Journal, SteppedClock) {
    let (journal, clock) = (Journal::default(), SteppedClock::new());
    let builder = builder(identity).clock(Arc::new(clock.clone()));
    let runs = lead_with(server, identity, builder, |client, leader| {
        let (journal, known, mut rng) = (journal.clone(), known.clone(), Rng::with_seed(seed));
        let mut previous = None;
        move |token, term| -> BoxFuture<'static, ()> {
            assert_ne!(previous.replace(term.clone()), Some(term.clone()), "once for each term");
            assert!(!token.is_cancelled(), "a token of its own");
            let present = journal.begin(&term);
            let after = Duration::from_millis(rng.u64(0..20_000));
            let way =
                rng.choice(["obeys", "lingers", "is deaf", "ends", "panics", "bursts", "factory"]).unwrap();
            known.lock().unwrap().insert(way);
            assert!(way != "factory", "in the factory");
            Box::pin(work(way, after, present, token, term, client.clone(), leader.clone()))
        }
    });
    (runs, journal, clock)
}

async fn work(
    way: &'static str,
    after: Duration,
    present: Present,
    token: CancellationToken,
    term: Term,
    client: Client,
    leader: Candidate,
) {
    let present = present;
    let writes = async {
        loop {
            if write(&client).await.is_ok() {
                // No write may use a later term than the work it belongs to.
                assert!(leader.term().is_none_or(|now| now == term), "a write in another term");
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    let way = async {
        let _bomb = (way == "bursts").then_some(Bomb);
        match way {
            "obeys" => present.until_cancelled(&token).await,
            "lingers" => {
                present.until_cancelled(&token).await;
                sleep(after / 4).await;
            }
            "is deaf" => future::pending().await,
            _ => {
                sleep(after).await;
                assert!(way != "panics", "in the work");
            }
        }
    };
    tokio::select! {
        () = writes => {}
        () = way => {}
    }
}

/// Plays one script. Returns how often work began.
async fn play(seed: u64, known: &Seen) -> usize {
    let _seed = Seed(seed);
    let mut rng = Rng::with_seed(seed);
    let server = ApiServer::new();
    let candidates = ["a", "b"].map(|identity| candidate(&server, identity, rng.u64(..), known));
    let mut faults = Vec::new();
    for _ in 0..STEPS {
        let (runs, _, clock) = &candidates[rng.usize(0..2)];
        let user = runs.leader.identity().as_str().to_owned();
        let what = rng.u8(0..8);
        match what {
            0 if server.object(LEASE).is_some() => steal(&server),
            1 | 2 => drop(server.delete("outsider", LEASE)),
            3 | 4 => clock.step(Duration::from_millis(rng.u64(0..20_000))),
            5 => faults.push(server.inject(Fault::hang_before().user(user).resource("leases"))),
            6 => faults.clear(),
            _ => {}
        }
        // The steps mostly follow each other quickly, so that they happen in the middle of other steps.
        let pause = if rng.u8(0..3) > 0 { rng.u64(0..30) } else { rng.u64(0..8_000) };
        pass(Duration::from_millis(pause)).await;
    }
    faults.clear();
    let begun = |(_, journal, _): &(Runs, Journal, SteppedClock)| journal.begun().len();
    let before: usize = candidates.iter().map(begun).sum();
    // A stolen lease expires, and a pause takes at most a minute.
    until(Duration::from_secs(150), "some work runs again", || {
        candidates.iter().map(begun).sum::<usize>() > before
            || candidates.iter().any(|(_, journal, _)| journal.present() == 1)
    })
    .await;
    for (runs, journal, _) in &candidates {
        assert!(journal.most() <= 1, "seed {seed}: {} at once in one process", journal.most());
        runs.shutdown.cancel();
    }
    let mut total = 0;
    for (runs, journal, _) in candidates {
        within(Duration::from_secs(60), "the candidate stops", runs.run)
            .await
            .expect("no panic comes out")
            .expect("the candidate stops");
        assert_eq!((journal.most().min(1), journal.present()), (journal.most(), 0));
        assert!(!runs.leader.is_leader());
        total += journal.begun().len();
    }
    total
}

#[tokio::test(start_paused = true)]
async fn s11_work_of_two_terms_never_overlaps() {
    let known = Seen::default();
    let mut total = 0;
    for seed in 0..SEEDS {
        total += play(seed, &known).await;
    }
    assert!(total as u64 > 5 * SEEDS, "only {total} works in {SEEDS} scripts");
    assert_eq!(known.lock().unwrap().len(), 7, "every kind of work");
}
