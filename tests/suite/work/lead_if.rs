//! A candidate that leads only while its program says yes.

use crate::support::{
    FIRST, LEASE, SOON, begin_write, build, builder, candidate, free, gated, leading, leads_by, pass,
    releases, until, within,
};
use kube_leader_gate::{
    Candidate, Election, LeaseTiming,
    election::{ElectionBuilder, ErrUnhealthy, Priority, Running},
    health::Health,
    testing::{ApiServer, Fault, ManualClock},
};
use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{
            AtomicBool, AtomicU32,
            Ordering::{Relaxed, SeqCst},
        },
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

/// At 15/10/2 s a holder leads on for a retry period while its check says no.
const TOLERANCE: Duration = Duration::from_secs(2);
const MINUTE: Duration = Duration::from_secs(60);

/// Whether a replica may lead.
#[derive(Clone, Default)]
struct May(Arc<AtomicBool>);

impl May {
    fn yes() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    fn set(&self, may: bool) {
        self.0.store(may, Relaxed);
    }

    fn of(&self, builder: ElectionBuilder) -> ElectionBuilder {
        let may = self.0.clone();
        builder.lead_if(move || if may.load(Relaxed) { Ok(()) } else { Err("the caches are\nempty") })
    }

    fn election(&self, server: &ApiServer, identity: &str) -> Election {
        build(server, identity, self.of(builder(identity))).unwrap()
    }

    fn start(&self, server: &ApiServer, identity: &str) -> Running {
        self.election(server, identity).start()
    }
}

fn trouble(candidate: &Candidate) -> String {
    candidate.trouble().as_deref().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn candidate_that_may_not_lead_leaves_a_free_lease() {
    let server = ApiServer::new();
    let may = May::default();
    let a = may.start(&server, "a");
    pass(MINUTE).await;
    assert!(server.write_log().is_empty(), "it writes nothing");
    let told = "this replica leads only if its own check says yes: the caches are empty";
    assert_eq!(trouble(a.candidate()), told);
    let health = Health::new(a.candidate().clone(), MINUTE);
    let ready = health.answer("/readyz");
    assert_eq!((ready.status, &*ready.body), (503, &*format!("the election is in trouble: {told}\n")));
    assert!(health.answer("/leader").body.contains(told));
    assert_eq!(health.answer("/livez").status, 200);
    may.set(true);
    within(FIRST, "it leads", a.candidate().elected()).await;
    assert_eq!((a.candidate().trouble(), health.answer("/readyz").status), (None, 200));
}

#[tokio::test(start_paused = true)]
async fn first_yes_takes_the_lease() {
    let server = ApiServer::new();
    let all = ["a", "b", "c"].map(|identity| (May::default(), identity));
    let replicas = all.clone().map(|(may, identity)| may.start(&server, identity));
    pass(MINUTE).await;
    assert!(replicas.iter().all(|it| !it.candidate().is_leader()));
    all[1].0.set(true);
    within(FIRST, "it leads", replicas[1].candidate().elected()).await;
}

#[tokio::test(start_paused = true)]
async fn candidate_that_may_not_lead_leaves_a_released_or_expired_lease_to_others() {
    for crashes in [false, true] {
        let server = ApiServer::new();
        let (holder, _) = leading(&server, "holder").await;
        let a = May::default().start(&server, "a");
        pass(FIRST).await;
        if crashes {
            drop(holder);
        } else {
            holder.stop().await;
        }
        pass(MINUTE).await;
        assert!(!a.candidate().is_leader());
        let b = candidate(&server, "b").start();
        within(MINUTE, "the other one leads", b.candidate().elected()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn s4_holder_that_may_not_lead_any_more_gives_the_lease_up_in_order() {
    let server = ApiServer::new();
    let may = May::yes();
    let election = may.election(&server, "a");
    let client = gated(&server, &election, "a");
    let a = election.start();
    within(FIRST, "it leads", a.candidate().elected()).await;
    let b = candidate(&server, "b").start();
    let slow = server.inject(Fault::delay_before(FIRST).user("a").verb("create").resource("tokenreviews"));
    may.set(false);
    pass(TOLERANCE / 2).await;
    assert!(a.candidate().can_write(), "the tolerance is not over");
    may.set(true);
    pass(SOON).await;
    pass(TOLERANCE).await;
    assert!(a.candidate().can_write(), "a short no does not count");
    may.set(false);
    pass(TOLERANCE).await;
    let written = begin_write(a.candidate(), &client).await;
    until(TOLERANCE, "the gate closes", || !a.candidate().can_write()).await;
    assert!(a.candidate().is_leader() && releases(&server, "a").is_empty(), "the write finishes first");
    written.await.unwrap().unwrap();
    assert_eq!(slow.hits(), 1);
    within(SOON, "the other one leads", b.candidate().elected()).await;
    assert_eq!(releases(&server, "a").len(), 1);
    drop(b);
    pass(MINUTE).await;
    assert!(!a.candidate().is_leader(), "it stays away while the check says no");
    may.set(true);
    within(FIRST, "it leads again", a.candidate().elected()).await;
}

/// So often have the two replicas given the lease up within ten minutes, while the check of one changes each `period`.
async fn given_up_while_a_check_flaps(period: Duration) -> usize {
    let server = ApiServer::new();
    let may = May::yes();
    let a = may.start(&server, "a");
    within(FIRST, "it leads", a.candidate().elected()).await;
    let _b = candidate(&server, "b").start();
    let turns = 600 / u32::try_from(period.as_secs()).unwrap();
    for turn in 0..turns {
        may.set(turn % 2 == 0);
        pass(period).await;
    }
    releases(&server, "a").len() + releases(&server, "b").len()
}

#[tokio::test(start_paused = true)]
async fn check_that_flaps_moves_the_leadership_once_at_most() {
    assert_eq!(given_up_while_a_check_flaps(Duration::from_secs(1)).await, 0);
    assert_eq!(given_up_while_a_check_flaps(Duration::from_secs(10)).await, 1);
    assert_eq!(given_up_while_a_check_flaps(Duration::from_secs(30)).await, 1);
}

/// There is no other replica, so each yes could take the lease.
#[tokio::test(start_paused = true)]
async fn lone_candidate_whose_check_flaps_stays_away_for_longer_each_time() {
    let server = ApiServer::new();
    let may = May::yes();
    let _a = may.start(&server, "a");
    for turn in 0..60 {
        may.set(turn % 2 == 0);
        pass(Duration::from_secs(10)).await;
    }
    let times: Vec<_> = releases(&server, "a").iter().map(|release| release.received.at).collect();
    let between: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    assert!(between.len() < 20 && between[0] < 30 && between.last() >= Some(&40), "{between:?}");
}

#[tokio::test(start_paused = true)]
async fn panic_of_a_check_says_no() {
    let server = ApiServer::new();
    let panics = Arc::new(AtomicBool::new(true));
    let check = panics.clone();
    let builder = builder("a").lead_if(move || -> Result<(), &str> {
        assert!(!check.load(Relaxed), "no disk");
        Ok(())
    });
    let a = build(&server, "a", builder).unwrap().start();
    pass(FIRST).await;
    assert!(trouble(a.candidate()).ends_with("says yes: it panicked: no disk"), "{}", trouble(a.candidate()));
    panics.store(false, Relaxed);
    within(FIRST, "it leads", a.candidate().elected()).await;
}

/// It must not. The election's task blocks with it, so that no renewal comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_check_that_blocks_ends_the_term_at_its_deadline() {
    let (server, clock) = (ApiServer::new(), ManualClock::new());
    free(&server);
    let ((entered, is_in), (hold, leave)) = (mpsc::sync_channel(1), mpsc::channel::<()>());
    let (blocks, leave) = (Arc::new(AtomicBool::new(false)), Mutex::new(leave));
    let by_test = blocks.clone();
    let builder = builder("a").clock(Arc::new(clock.clone())).lead_if(move || {
        if by_test.load(SeqCst) {
            let _ = entered.try_send(());
            let _ = leave.lock().unwrap().recv();
        }
        Ok::<_, &str>(())
    });
    let a = build(&server, "a", builder).unwrap().start();
    leads_by(&clock, MINUTE, a.candidate()).await;
    blocks.store(true, SeqCst);
    clock.advance(Duration::from_secs(1));
    is_in.recv_timeout(MINUTE).expect("the check is asked");
    assert!(a.candidate().can_write());
    clock.advance(Duration::from_secs(10));
    assert!(!a.candidate().can_write());
    clock.advance(Duration::from_secs(5));
    let unhealthy = a.candidate().check(Duration::ZERO).unwrap_err();
    assert!(matches!(unhealthy, ErrUnhealthy::Stuck { .. }), "{unhealthy}");
    drop(hold);
    until(MINUTE, "its task runs", || a.candidate().check(Duration::ZERO).is_ok()).await;
}

#[tokio::test(start_paused = true)]
async fn all_checks_have_to_say_yes() {
    let server = ApiServer::new();
    let (one, two) = (May::default(), May::default());
    let a = build(&server, "a", two.of(one.of(builder("a")))).unwrap().start();
    for may in [&one, &two] {
        pass(FIRST).await;
        assert!(!a.candidate().is_leader());
        may.set(true);
    }
    within(FIRST, "it leads", a.candidate().elected()).await;
}

#[tokio::test(start_paused = true)]
async fn preferred_candidate_that_may_not_lead_asks_for_nothing() {
    let server = ApiServer::new();
    let prefers = |key| Priority::ranked(key, ["2", "1"]).unwrap();
    let a = build(&server, "a", builder("a").priority(prefers("1"))).unwrap().start();
    within(FIRST, "it leads", a.candidate().elected()).await;
    let may = May::default();
    let b = build(&server, "b", may.of(builder("b").priority(prefers("2")))).unwrap().start();
    pass(MINUTE).await;
    assert!(a.candidate().can_write());
    may.set(true);
    within(FIRST, "the preferred one leads", b.candidate().elected()).await;
}

#[tokio::test(start_paused = true)]
async fn leading_only_work_ends_with_its_grace() {
    let server = ApiServer::new();
    let may = May::yes();
    let election = may.election(&server, "a");
    let (of_a, begun, ended) =
        (election.candidate(), Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (begins, ends) = (begun.clone(), ended.clone());
    let run = tokio::spawn(election.run_while_leading(pending(), move |over, _| {
        begins.fetch_add(1, SeqCst);
        let ends = ends.clone();
        async move {
            over.cancelled().await;
            pass(FIRST).await;
            ends.fetch_add(1, SeqCst);
        }
    }));
    within(FIRST, "it leads", of_a.elected()).await;
    may.set(false);
    until(TOLERANCE + SOON * 4, "the gate closes", || !of_a.can_write()).await;
    assert!(releases(&server, "a").is_empty(), "the work still ends");
    until(FIRST + SOON, "the work has ended", || ended.load(SeqCst) == 1).await;
    until(SOON, "the lease is released", || releases(&server, "a").len() == 1).await;
    may.set(true);
    until(MINUTE, "the work begins again", || begun.load(SeqCst) == 2).await;
    run.abort();
}

/// It may take its own lease back at once, but its caches are not filled yet.
#[tokio::test(start_paused = true)]
async fn restarted_container_that_may_not_lead_releases_the_lease_of_the_one_before() {
    let server = ApiServer::new();
    let of_pod = || builder("a").pod_uid("pod-1").apart();
    let before = build(&server, "a", of_pod()).unwrap().start();
    within(FIRST, "it leads", before.candidate().elected()).await;
    drop(before);
    // It has held the lease for long, so the next container could keep it.
    let long_ago = "2026-01-01T00:00:00.000000Z";
    server.edit("outsider", LEASE, |lease| lease["spec"]["acquireTime"] = long_ago.into()).unwrap();
    let a = build(&server, "a", May::default().of(of_pod())).unwrap().start();
    let b = candidate(&server, "b").start();
    // What the container before has sent may land for a safety margin.
    within(Duration::from_secs(6), "the other one leads", b.candidate().elected()).await;
    assert!(!a.candidate().is_leader() && releases(&server, "a").len() == 1);
}

#[tokio::test(start_paused = true)]
async fn term_that_waits_to_open_is_given_up_too() {
    let server = ApiServer::new();
    let may = May::yes();
    let a = may.election(&server, "a").open_when(|_| pending::<Result<(), String>>()).start();
    until(FIRST, "it waits", || a.candidate().opening().is_some()).await;
    pass(FIRST).await;
    assert!(trouble(a.candidate()).contains("this process holds the lease"));
    may.set(false);
    until(FIRST, "the check comes first", || trouble(a.candidate()).ends_with("the caches are empty")).await;
    until(TOLERANCE + FIRST, "the lease is released", || releases(&server, "a").len() == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_that_takes_300_ms_is_asked_again() {
    let server = ApiServer::new();
    free(&server);
    let yes_from = Instant::now() + Duration::from_secs(6);
    let builder = builder("a").timing(LeaseTiming::default()).lead_if(move || {
        thread::sleep(Duration::from_millis(300));
        if Instant::now() >= yes_from { Ok(()) } else { Err("not yet") }
    });
    let a = build(&server, "a", builder).unwrap().start();
    within(Duration::from_secs(10), "it leads", a.candidate().elected()).await;
}

/// It would begin work that is ended again a moment later.
#[tokio::test(start_paused = true)]
async fn gate_does_not_open_while_the_check_says_no() {
    let server = ApiServer::new();
    let (may, met) = (May::yes(), Arc::new(Semaphore::new(0)));
    let permits = met.clone();
    let a = build(&server, "a", may.of(builder("a"))).unwrap().open_when(move |_| {
        let permits = permits.clone();
        async move {
            permits.acquire().await.unwrap().forget();
            Ok::<_, String>(())
        }
    });
    let a = a.start();
    until(FIRST, "it waits", || a.candidate().opening().is_some()).await;
    may.set(false);
    pass(TOLERANCE / 2).await;
    met.add_permits(1);
    pass(SOON).await;
    assert!(!a.candidate().can_write(), "its check says no");
}
