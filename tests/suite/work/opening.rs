//! A gate that waits for what the program names (rule S16).

use crate::support::{
    self, FIRST, SKEW, SOON, builder, candidate, free, gated, leading, lease_writes, pass, releases, steal,
    until, within, write,
};
use kube_leader_gate::{
    Candidate, Election, ErrNotLeader,
    election::{LeaseEnd, Priority, Running},
    health::Health,
    testing::{ApiServer, Fault},
};
use std::{
    future::{Future, pending},
    io,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};
use tokio::sync::Semaphore;

/// How long a candidate rests after it has given way, at 15/10/2 s.
const REST: Duration = Duration::from_secs(2);
pub const BOUND: Duration = Duration::from_secs(10);

/// A condition that a test meets, and how often it has begun and ended.
#[derive(Clone, Default)]
struct Condition {
    met: Arc<Permits>,
    begun: Arc<AtomicU32>,
    ended: Arc<AtomicU32>,
}

struct Permits(Semaphore);

impl Default for Permits {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

struct Ends(Arc<AtomicU32>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Condition {
    fn wait(&self) -> impl Future<Output = Result<(), io::Error>> + Send + use<> {
        let this = self.clone();
        this.begun.fetch_add(1, SeqCst);
        let ends = Ends(this.ended.clone());
        async move {
            let _ends = ends;
            this.met.0.acquire().await.unwrap().forget();
            Ok(())
        }
    }

    fn meet(&self) {
        self.met.0.add_permits(1);
    }

    /// How often the election has begun to wait for it, and how many of these waits have ended.
    fn counts(&self) -> (u32, u32) {
        (self.begun.load(SeqCst), self.ended.load(SeqCst))
    }

    fn of(&self, election: Election) -> Election {
        let this = self.clone();
        election.open_when(move |_| this.wait())
    }
}

/// Counts how often the gate begins to wait. The condition is met at once.
pub fn counted(election: Election) -> (Election, Arc<AtomicU32>) {
    let condition = Condition::default();
    condition.met.0.add_permits(100);
    (condition.of(election), condition.begun)
}

/// A candidate that has the lease, and waits.
async fn waiting(server: &ApiServer, identity: &str) -> (Running, Condition) {
    let condition = Condition::default();
    let running = condition.of(candidate(server, identity)).start();
    until(FIRST, "it waits", || running.candidate().opening().is_some()).await;
    (running, condition)
}

pub fn trouble(candidate: &Candidate) -> String {
    candidate.trouble().as_deref().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn s16_gate_stays_shut_until_the_condition_is_met() {
    let server = ApiServer::new();
    let condition = Condition::default();
    let election = condition.of(candidate(&server, "a"));
    let client = gated(&server, &election, "a");
    let a = election.start();
    until(FIRST, "it waits", || a.candidate().opening().is_some()).await;
    let b = candidate(&server, "b").start();
    pass(Duration::from_secs(8)).await;
    let refused = write(&client).await.unwrap_err();
    assert!(ErrNotLeader::find(&refused).is_some(), "{refused}");
    assert!(!a.candidate().is_leader() && a.candidate().term().is_none());
    assert_eq!(b.candidate().holder().as_deref(), Some("a"), "it keeps the lease");
    assert!(lease_writes(&server, "a").len() > 3, "it renews the lease");
    let opening = a.candidate().opening();
    condition.meet();
    let term = within(SOON, "the gate opens", a.candidate().elected()).await;
    assert_eq!(Some(term), opening);
    assert_eq!(a.candidate().opening(), None);
    write(&client).await.unwrap();
    assert_eq!(condition.counts(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn each_term_waits_anew_for_all_conditions() {
    let server = ApiServer::new();
    let (one, two) = (Condition::default(), Condition::default());
    let a = two.of(one.of(candidate(&server, "a"))).start();
    for term in 1..4 {
        until(Duration::from_secs(4), "it waits", || a.candidate().opening().is_some()).await;
        one.meet();
        pass(SOON).await;
        assert!(!a.candidate().can_write(), "the other condition is not met");
        two.meet();
        within(SOON, "the gate opens", a.candidate().elected()).await;
        assert_eq!((one.counts(), two.counts()), ((term, term), (term, term)));
        a.candidate().give_way();
        until(SOON, "the term ends", || !a.candidate().is_leader()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn leading_only_work_begins_after_the_gate_has_opened() {
    let server = ApiServer::new();
    let condition = Condition::default();
    let election = condition.of(candidate(&server, "a"));
    let (of_a, begun) = (election.candidate(), Arc::new(AtomicU32::new(0)));
    let counts = begun.clone();
    let run = tokio::spawn(election.run_while_leading(pending(), move |_, _| {
        counts.fetch_add(1, SeqCst);
        pending()
    }));
    until(FIRST, "it waits", || of_a.opening().is_some()).await;
    pass(Duration::from_secs(5)).await;
    assert_eq!(begun.load(SeqCst), 0);
    condition.meet();
    until(SOON, "the work begins", || begun.load(SeqCst) == 1).await;
    run.abort();
}

#[tokio::test(start_paused = true)]
async fn failed_condition_gives_the_lease_to_another() {
    let server = ApiServer::new();
    let election = candidate(&server, "a").open_when(|_| async { Err(io::Error::other("no\nlist")) });
    let of_a = election.candidate();
    let _a = election.start();
    until(FIRST, "it has released the lease", || releases(&server, "a").len() == 1).await;
    let told = trouble(&of_a);
    assert!(
        told.starts_with("the gate of a new term stays shut: no list; this replica has given the lease up"),
        "{told}"
    );
    let ready = Health::new(of_a.clone(), BOUND).answer("/readyz");
    assert!(ready.status == 503 && ready.body.contains("no list"), "{}", ready.body);
    let b = candidate(&server, "b").start();
    within(SOON, "the other one leads", b.candidate().elected()).await;
    pass(BOUND).await;
    until(2 * REST, "the trouble is over", || of_a.trouble().is_none()).await;
}

/// While one of them waits, the other one has no word of its gate. The lease shows a claim for longer than the gate waits,
/// because the API server is slow.
#[tokio::test(start_paused = true)]
async fn no_replica_is_ready_if_no_gate_can_open() {
    let server = ApiServer::new();
    let _slow = server.inject(Fault::delay_after(Duration::from_millis(300)).writes().resource("leases"));
    let never = |identity| {
        let builder = builder(identity).lead_if(|| Ok::<_, String>(())); // its task looks four times a second
        support::build(&server, identity, builder)
            .unwrap()
            .open_when(|_| pending::<Result<(), String>>())
            .start()
    };
    let all = ["a", "b"].map(never);
    pass(4 * BOUND).await;
    for _ in 0..600 {
        pass(FIRST / 10).await;
        let troubles = [&all[0], &all[1]].map(|it| trouble(it.candidate()));
        assert!(troubles.iter().all(|text| text.contains("stays shut")), "{troubles:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn long_time_limit_does_not_keep_a_replica_unready_beside_a_leader() {
    let server = ApiServer::new();
    let builder = builder("a").open_timeout(180 * BOUND);
    let a =
        support::build(&server, "a", builder).unwrap().open_when(|_| async { Err(io::Error::other("no")) });
    let a = a.start();
    until(FIRST, "it has released the lease", || releases(&server, "a").len() == 1).await;
    let _b = candidate(&server, "b").start();
    pass(7 * BOUND).await;
    assert_eq!(a.candidate().trouble(), None);
}

#[tokio::test(start_paused = true)]
async fn panic_counts_as_a_failure() {
    for in_the_call in [true, false] {
        let server = ApiServer::new();
        let election = candidate(&server, "a").open_when(move |_| {
            assert!(!in_the_call, "in the call");
            async move {
                if in_the_call {
                    return Ok::<_, io::Error>(());
                }
                panic!("in the poll")
            }
        });
        let of_a = election.candidate();
        let _a = election.start();
        until(FIRST, "it has released the lease", || releases(&server, "a").len() == 1).await;
        let place = if in_the_call { "in the call" } else { "in the poll" };
        assert!(trouble(&of_a).contains(&format!("it panicked: {place}")), "{}", trouble(&of_a));
    }
}

#[tokio::test(start_paused = true)]
async fn wait_has_a_bound() {
    let server = ApiServer::new();
    let (a, condition) = waiting(&server, "a").await;
    pass(Duration::from_millis(9_900)).await;
    assert!(trouble(a.candidate()).contains("this process holds the lease"), "{}", trouble(a.candidate()));
    assert!(releases(&server, "a").is_empty());
    until(2 * SOON, "it has released the lease", || releases(&server, "a").len() == 1).await;
    assert!(trouble(a.candidate()).contains("it has not come within 10s"), "{}", trouble(a.candidate()));
    assert_eq!(condition.counts(), (1, 1), "the wait has ended");
    until(2 * REST, "it contends again", || condition.counts().0 == 2).await;
    pass(SOON).await;
    assert!(trouble(a.candidate()).contains("this process holds the lease"), "{}", trouble(a.candidate()));
    condition.meet();
    within(SOON, "the gate opens", a.candidate().elected()).await;
    assert_eq!(a.candidate().trouble(), None);
}

#[tokio::test(start_paused = true)]
async fn short_wait_is_no_trouble() {
    let server = ApiServer::new();
    let (a, condition) = waiting(&server, "a").await;
    pass(Duration::from_millis(900)).await;
    assert_eq!(a.candidate().trouble(), None);
    let page = Health::new(a.candidate().clone(), BOUND).answer("/leader").body;
    assert!(page.contains(&format!(r#""opening":"{}""#, a.candidate().opening().unwrap())), "{page}");
    condition.meet();
    within(SOON, "the gate opens", a.candidate().elected()).await;
    assert!(Health::new(a.candidate().clone(), BOUND).answer("/leader").body.contains(r#""opening":null"#));
}

/// At first it rests for a retry period, as after each `give_way`.
#[tokio::test(start_paused = true)]
async fn candidate_that_fails_again_and_again_stays_away_for_longer() {
    let server = ApiServer::new();
    let _a = candidate(&server, "a").open_when(|_| async { Err(io::Error::other("no")) }).start();
    pass(Duration::from_secs(600)).await;
    let times: Vec<_> = releases(&server, "a").iter().map(|release| release.received.at).collect();
    let pauses: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses[0] < Duration::from_secs(3), "{pauses:?}");
    assert!(pauses.len() < 25 && pauses[10..].iter().all(|it| *it >= Duration::from_secs(30)), "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn give_way_stop_and_theft_end_the_wait_at_once() {
    for way in ["give way", "stop", "theft", "drop"] {
        let server = ApiServer::new();
        let (a, condition) = waiting(&server, "a").await;
        let of_a = a.candidate().clone();
        let b = candidate(&server, "b").start();
        pass(SOON).await;
        match way {
            "give way" => of_a.give_way(),
            "stop" => assert_eq!(within(SOON, "it stops", a.stop()).await, LeaseEnd::Released),
            "theft" => steal(&server),
            _ => drop(a),
        }
        until(SOON, way, || condition.counts() == (1, 1)).await;
        until(SOON, way, || of_a.opening().is_none()).await;
        condition.meet();
        if matches!(way, "give way" | "stop") {
            within(SOON, way, b.candidate().elected()).await;
        }
        pass(SOON).await;
        assert!(!of_a.can_write(), "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn preferred_candidate_gets_the_lease_of_one_that_waits() {
    let server = ApiServer::new();
    let prefers = |key| Priority::ranked(key, ["2", "1"]);
    let condition = Condition::default();
    let election = support::build(&server, "a", builder("a").priority(prefers("1").unwrap())).unwrap();
    let a = condition.of(election).start();
    until(FIRST, "it waits", || a.candidate().opening().is_some()).await;
    let b = support::build(&server, "b", builder("b").priority(prefers("2").unwrap())).unwrap().start();
    within(FIRST, "the preferred one leads", b.candidate().elected()).await;
    assert_eq!(condition.counts(), (1, 1));
}

/// What a former holder may still write would be missing in the cache.
#[tokio::test(start_paused = true)]
async fn s16_wait_begins_after_the_time_of_a_former_holder() {
    let server = ApiServer::new();
    let (former, _) = leading(&server, "former").await;
    let condition = Condition::default();
    let a = condition.of(candidate(&server, "a")).start();
    pass(FIRST).await;
    // Another client releases the lease in a form that is no word of its holder.
    server.edit("outsider", support::LEASE, |lease| lease["spec"]["holderIdentity"] = "a".into()).unwrap();
    pass(SKEW).await;
    assert_eq!(condition.counts().0, 0);
    drop(former);
    until(Duration::from_secs(40), "it waits", || condition.counts().0 == 1).await;
    condition.meet();
    within(SOON, "the gate opens", a.candidate().elected()).await;
}

#[tokio::test(start_paused = true)]
async fn a_bound_of_zero_is_refused() {
    let server = ApiServer::new();
    let refused = support::build(&server, "a", builder("a").open_timeout(Duration::ZERO)).unwrap_err();
    assert_eq!(refused.to_string(), "the open timeout is 0ns, allowed: any time longer than zero");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn condition_that_blocks_its_thread_has_a_bound_too() {
    let server = ApiServer::new();
    free(&server);
    let builder = builder("a").open_timeout(Duration::from_millis(300));
    let a = support::build(&server, "a", builder).unwrap().open_when(|_| async {
        thread::sleep(Duration::from_secs(6));
        Ok::<_, String>(())
    });
    let a = a.start();
    until(FIRST, "it waits", || a.candidate().opening().is_some()).await;
    until(Duration::from_secs(4), "the lease is released", || releases(&server, "a").len() == 1).await;
}
