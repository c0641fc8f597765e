//! Many candidates on one lease: what a handover asks of the API server, and who goes first. Times are never asserted,
//! but for the order of things.

use crate::support::{
    FIRST, LEASE, SOON, build, builder, candidate, leading, lease_writes, pass, until, within,
};
use kube_leader_gate::{
    election::{LeaseEnd, Priority, Running},
    testing::{ApiServer, Fault},
};
use serde_json::{Value, json};
use std::time::Duration;

const STANDBYS: &str = "kube-leader-gate/standbys";

/// Long enough for every free place to be taken.
const SETTLES: Duration = Duration::from_millis(2_500);

fn standbys(server: &ApiServer) -> Value {
    let lease = server.object(LEASE).expect("the lease");
    let text = lease["metadata"]["annotations"][STANDBYS].as_str().unwrap_or("[]").to_owned();
    serde_json::from_str(&text).expect("what a candidate writes is JSON")
}

fn annotate(server: &ApiServer, value: &str) {
    server
        .edit("outsider", LEASE, |lease| lease["metadata"]["annotations"] = json!({ STANDBYS: value }))
        .unwrap();
}

/// A leader, and so many followers that know it.
async fn crowd(server: &ApiServer, followers: usize) -> (Running, Vec<Running>) {
    let (leader, _) = leading(server, "leader").await;
    let followers: Vec<_> =
        (0..followers).map(|it| candidate(server, &format!("follower-{it}")).start()).collect();
    until(FIRST, "all know the leader", || {
        followers.iter().all(|it| it.candidate().holder().as_deref() == Some("leader"))
    })
    .await;
    pass(SETTLES).await;
    (leader, followers)
}

fn leads(followers: &[Running]) -> Option<usize> {
    followers.iter().position(|it| it.candidate().is_leader())
}

/// The lease requests since the server was asked last: writes, and reads.
fn requests(server: &ApiServer, users: usize) -> (usize, u64) {
    let writes = server.write_log().iter().filter(|write| write.resource == "leases").count();
    let names = (0..users).map(|it| format!("follower-{it}")).chain(["leader".to_owned()]);
    (writes, names.map(|name| server.reads(&name, "get", "leases")).sum())
}

#[tokio::test(start_paused = true)]
async fn requests_per_handover_do_not_grow_with_the_crowd() {
    for size in [3, 30, 100] {
        let server = ApiServer::new();
        let (leader, mut followers) = crowd(&server, size).await;
        let mut leader = Some(leader);
        for round in 0..4 {
            let (writes, reads) = requests(&server, size);
            leader.take().expect("a leader").stop().await;
            until(SOON, "another one leads", || leads(&followers).is_some()).await;
            leader = leads(&followers).map(|it| followers.swap_remove(it));
            // Shorter than the time between two renewals.
            pass(Duration::from_millis(1_500)).await;
            let (more_writes, more_reads) = requests(&server, size);
            let (writes, reads) = (more_writes - writes, more_reads - reads);
            assert!(writes <= 5 && reads <= 20, "{size}, round {round}: {writes} writes, {reads} reads");
            if followers.is_empty() {
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn first_standby_takes_a_released_lease() {
    let server = ApiServer::new();
    let (leader, followers) = crowd(&server, 8).await;
    let list = standbys(&server);
    assert_eq!(list.as_array().map(Vec::len), Some(3), "{list}");
    leader.stop().await;
    until(SOON, "another one leads", || leads(&followers).is_some()).await;
    let successor = followers[leads(&followers).unwrap()].candidate();
    assert_eq!(list[0], successor.identity().as_str());
    assert_eq!(standbys(&server), json!([list[1], list[2]]), "the others keep their places");
}

#[tokio::test(start_paused = true)]
async fn first_standby_takes_an_expired_lease() {
    let server = ApiServer::new();
    let (leader, followers) = crowd(&server, 8).await;
    let list = standbys(&server);
    let (writes, _) = requests(&server, 8);
    drop(leader);
    until(Duration::from_secs(16), "another one leads", || leads(&followers).is_some()).await;
    assert_eq!(list[0], followers[leads(&followers).unwrap()].candidate().identity().as_str());
    pass(SOON).await;
    assert_eq!(requests(&server, 8).0 - writes, 1, "no other one tried");
}

/// A standby gives its place back when it stops and when it stands down.
#[tokio::test(start_paused = true)]
async fn leaving_standby_gives_its_place_back() {
    let server = ApiServer::new();
    let (_leader, mut followers) = crowd(&server, 2).await;
    let [first, second] = [0, 1].map(|place| standbys(&server)[place].clone());
    let stops = followers.iter().position(|it| first == it.candidate().identity().as_str()).unwrap();
    assert_eq!(followers.swap_remove(stops).stop().await, LeaseEnd::Released);
    assert_eq!(standbys(&server), json!([second]));
    let mut rests = followers.remove(0);
    let resting = tokio::spawn(async move {
        rests.step_down(Duration::from_secs(10)).await;
        rests
    });
    until(SOON, "it has left", || standbys(&server) == json!([])).await;
    pass(Duration::from_secs(9)).await;
    assert_eq!(standbys(&server), json!([]), "it does not contend");
    let _rested = resting.await.unwrap();
    pass(SETTLES).await;
    assert_eq!(standbys(&server), json!([second]));
}

/// A follower's stop does not wait for an API server that does not answer.
#[tokio::test(start_paused = true)]
async fn leaving_is_bounded_by_one_call() {
    let server = ApiServer::new();
    let (_leader, mut followers) = crowd(&server, 1).await;
    let _hang = server.inject(Fault::hang_before().user("follower-0").verb("update"));
    within(Duration::from_secs(3), "it stops", followers.remove(0).stop()).await;
}

/// A candidate without `update` stays a healthy follower.
#[tokio::test(start_paused = true)]
async fn refused_join_is_no_trouble() {
    let server = ApiServer::new();
    let forbidden = server.inject(Fault::forbidden().user("follower-0").verb("update"));
    let (_leader, followers) = crowd(&server, 1).await;
    pass(Duration::from_secs(600)).await;
    assert!(followers[0].candidate().trouble().is_none(), "{:?}", followers[0].candidate().trouble());
    followers[0].candidate().check_ready().expect("ready");
    assert!((2..=12).contains(&forbidden.hits()), "{} attempts in ten minutes", forbidden.hits());
}

/// Another program takes the list out each time.
#[tokio::test(start_paused = true)]
async fn list_that_is_removed_is_written_less_and_less() {
    let server = ApiServer::new();
    let (_leader, _followers) = crowd(&server, 1).await;
    for _ in 0..600 {
        annotate(&server, "");
        pass(Duration::from_secs(1)).await;
    }
    let joins = lease_writes(&server, "follower-0").len();
    assert!((2..=12).contains(&joins), "{joins} joins in ten minutes");
}

/// Whatever stands in the list, the lease is taken soon after it is free.
#[tokio::test(start_paused = true)]
async fn nonsense_in_the_list_delays_no_takeover() {
    let many = json!((0..5_000).map(|it| it.to_string()).collect::<Vec<_>>()).to_string();
    let own = json!(["follower-0", "follower-0", "leader"]).to_string();
    let dead = json!(["x", "y", "z"]).to_string();
    for list in ["", "{}", "[[[", "x,y", &"x".repeat(100_000), &many, &own, &dead] {
        let server = ApiServer::new();
        let (leader, followers) = crowd(&server, 1).await;
        annotate(&server, list);
        pass(Duration::from_millis(20)).await;
        leader.stop().await;
        within(Duration::from_millis(1_500), "the follower leads", followers[0].candidate().elected()).await;
    }
}

/// A candidate that knows nothing of standbys takes the lease at any time, and the others follow it.
#[tokio::test(start_paused = true)]
async fn outsider_may_take_the_lease_first() {
    let server = ApiServer::new();
    let (leader, followers) = crowd(&server, 3).await;
    let slow =
        server.inject(Fault::delay_before(Duration::from_millis(50)).verb("update").resource("leases"));
    let stops = tokio::spawn(leader.stop());
    until(FIRST, "the lease is free", || server.object(LEASE).unwrap()["spec"]["holderIdentity"] == "").await;
    let take = |lease: &mut Value| {
        lease["spec"]["holderIdentity"] = "go".into();
        lease["spec"]["leaseDurationSeconds"] = 15.into();
        lease["metadata"]["annotations"] = json!({});
    };
    server.edit("go", LEASE, take).unwrap();
    stops.await.unwrap();
    drop(slow);
    until(SOON, "all know it", || {
        followers.iter().all(|it| it.candidate().holder().as_deref() == Some("go"))
    })
    .await;
    assert_eq!(leads(&followers), None);
}

/// A candidate of higher precedence takes the place of a lower one, and does not wait for it.
#[tokio::test(start_paused = true)]
async fn preferred_candidate_stands_before_lower_ones() {
    let server = ApiServer::new();
    let ranked = |identity: &str, key: &str| {
        let priority = Priority::ranked(key, ["high", "low"]).unwrap();
        build(&server, identity, builder(identity).priority(priority)).unwrap().start()
    };
    let leader = ranked("leader", "high");
    within(FIRST, "the leader leads", leader.candidate().elected()).await;
    let _low: Vec<_> = (0..4).map(|it| ranked(&format!("low-{it}"), "low")).collect();
    pass(SETTLES).await;
    let high = ranked("preferred", "high");
    pass(SETTLES).await;
    assert_eq!(standbys(&server)[0], json!(["preferred", "high"]));
    leader.stop().await;
    within(SOON, "the preferred one leads", high.candidate().elected()).await;
}

/// A join changes nothing else in the lease, and is no renewal.
#[tokio::test(start_paused = true)]
async fn s6_join_does_not_prolong_the_holders_time() {
    let server = ApiServer::new();
    let (leader, _) = leading(&server, "leader").await;
    let follower = candidate(&server, "follower-0").start();
    until(SOON, "it knows the leader", || follower.candidate().holder().is_some()).await;
    let seen = tokio::time::Instant::now();
    drop(leader);
    let before = server.object(LEASE).unwrap();
    pass(SETTLES).await;
    assert_eq!(standbys(&server), json!(["follower-0"]));
    assert_eq!(server.object(LEASE).unwrap()["spec"], before["spec"]);
    within(Duration::from_secs(16), "the follower leads", follower.candidate().elected()).await;
    let late = seen.elapsed().saturating_sub(Duration::from_secs(15));
    assert!(late < Duration::from_millis(20), "{late:?} after the expiry");
}

/// The join reads the lease first, and the order to stop comes during that read.
#[tokio::test(start_paused = true)]
async fn stop_during_the_read_of_a_join_prevents_it() {
    let server = ApiServer::new();
    let (_leader, _) = leading(&server, "leader").await;
    let follower = candidate(&server, "follower-0").start();
    until(SOON, "it knows the leader", || follower.candidate().holder().is_some()).await;
    let slow =
        Fault::delay_before(Duration::from_millis(500)).user("follower-0").verb("get").resource("leases");
    let slow = server.inject(slow);
    until(SETTLES, "it reads, to join", || slow.hits() > 0).await;
    assert_eq!(within(SOON * 10, "it stops", follower.stop()).await, LeaseEnd::Released);
    assert_eq!(standbys(&server), json!([]));
    assert_eq!(lease_writes(&server, "follower-0").len(), 0, "it neither joins nor leaves");
}

/// Each time that the leader sends its release, a standby has just joined or left.
#[tokio::test(start_paused = true)]
async fn s5_release_goes_on_however_often_standbys_change() {
    for changes in 1..=6 {
        let server = ApiServer::new();
        let (leader, _) = leading(&server, "leader").await;
        let slow = Fault::delay_before(Duration::from_millis(50)).user("leader").verb("update");
        let slow = server.inject(slow.resource("leases"));
        let stops = tokio::spawn(leader.stop());
        for change in 1..=changes {
            until(Duration::from_secs(10), "a release is under way", || {
                slow.hits() == change || stops.is_finished()
            })
            .await;
            annotate(&server, &json!([format!("follower-{change}")]).to_string());
        }
        assert_eq!(stops.await.unwrap(), LeaseEnd::Released, "after {changes} changes");
    }
}

/// A drained node takes the leader and all standbys with it.
#[tokio::test(start_paused = true)]
async fn s5_leader_that_stops_with_its_standbys_releases() {
    for seed in 0..30 {
        let mut random = fastrand::Rng::with_seed(seed);
        let server = ApiServer::new();
        let (leader, followers) = crowd(&server, 5).await;
        let _slow = ["get", "update"].map(|verb| {
            server.inject(Fault::delay_before(Duration::from_millis(50)).verb(verb).resource("leases"))
        });
        let mut stops = tokio::task::JoinSet::new();
        for candidate in followers.into_iter().chain([leader]) {
            let after = Duration::from_millis(random.u64(..200));
            stops.spawn(async move {
                pass(after).await;
                candidate.stop().await
            });
        }
        let ends = within(SOON * 10, "all stop", stops.join_all()).await;
        assert!(ends.iter().all(|end| *end == LeaseEnd::Released), "seed {seed}: {ends:?}");
    }
}
