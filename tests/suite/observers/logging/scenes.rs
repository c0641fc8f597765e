//! A run in which every logged event happens.

use super::heard::Heard;
use crate::{
    locks::flawed::{Flaw, flawed},
    locks::layers::withholding,
    support::{
        LEASE, SOON, build, builder, candidate, free, gated, leading, lease, pass, release, steal, until,
        within, write,
    },
};
use kube::runtime::controller::Action;
use kube_client::{Client, Config};
use kube_leader_gate::{
    Election, Identity, LeaseTiming, Policy, WriteGateLayer,
    election::{Priority, Running},
    leadership::Grantor,
    lease::LeasePool,
    policy::Rule,
    runtime::gated as gated_reconciler,
    testing::{ApiServer, Fault},
};
use serde_json::{Value, json};
use std::{
    fs,
    future::{Future, pending},
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
        mpsc,
    },
    time::Duration,
};
use tempfile::TempDir;

const MINUTE: Duration = Duration::from_secs(60);

pub fn play_all() {
    play(true, asking());
    play(true, a_question_for_nobody());
    play(true, handover_and_theft());
    play(true, refused_calls_and_watches());
    play(true, nonsense_in_the_lease());
    play(true, a_long_wait());
    play(true, races_and_silence());
    play(true, async { invalid_rule() });
    play(true, stops_that_fail());
    play(true, a_slow_stop());
    play(true, no_fresh_client());
    play(true, fresh_client_that_hangs());
    play(true, events());
    play(true, reconcilers());
    play(true, work());
    play(true, giving_way());
    play(true, a_gate_that_waits());
    play(true, a_check_that_comes_and_goes());
    play(true, a_pool_without_its_watch());
    play(true, versions_without_numbers());
    play(true, a_withheld_answer());
    play(true, processes_of_one_name());
    play(true, a_comparison_that_panics());
    play(true, async { leads(&builder("a").build_alone().unwrap().start()).await });
    play(false, connections());
    play(false, credentials_that_cannot_be_renewed());
}

fn play(paused: bool, scene: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(paused).build().expect("a runtime").block_on(scene);
}

async fn leads(running: &Running) {
    within(MINUTE, "the candidate leads", running.candidate().elected()).await;
}

async fn a_gate_that_waits() {
    let server = ApiServer::new();
    let fails = Arc::new(AtomicBool::new(true));
    let election = candidate(&server, "a").open_when(move |_| {
        let fails = fails.swap(false, Ordering::SeqCst);
        async move { if fails { Err("it is not there") } else { Ok(()) } }
    });
    leads(&election.start()).await;
}

async fn a_check_that_comes_and_goes() {
    let server = ApiServer::new();
    let may = Arc::new(AtomicBool::new(true));
    let check = may.clone();
    let priority = Priority::ranked("high", ["high"]).expect("a priority");
    let builder = builder("a")
        .priority(priority)
        .lead_if(move || if check.load(Ordering::SeqCst) { Ok(()) } else { Err("not now") });
    let _a = build(&server, "a", builder).expect("a valid election").start();
    for turn in 0..10 {
        may.store(turn % 2 == 0, Ordering::SeqCst);
        pass(Duration::from_secs(3)).await;
    }
}

async fn handover_and_theft() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let b = candidate(&server, "b");
    let rejected = gated(&server, &b, "b");
    let b = b.start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    write(&rejected).await.unwrap_err();
    a.stop().await;
    leads(&b).await;
    drop(client);
    let hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let cut_off = tokio::spawn(async move { write(&rejected).await });
    until(SOON, "a write is under way", || hang.hits() > 0).await;
    steal(&server);
    cut_off.await.unwrap().unwrap_err();
}

fn invalid_rule() {
    let policy = Policy::strict().allow(Rule::new("", "pods").name(""));
    let _layer = WriteGateLayer::new(Grantor::new().leadership()).with_policy(policy);
}

async fn refused_calls_and_watches() {
    let server = ApiServer::new();
    let refused = server.inject(Fault::forbidden());
    let a = candidate(&server, "a").start();
    pass(MINUTE * 3).await;
    drop(refused);
    leads(&a).await;
    until(MINUTE * 2, "the watch stands", || server.open_watches() > 0).await;
    pass(SOON).await;
}

async fn nonsense_in_the_lease() {
    let server = ApiServer::new();
    server.put("x", LEASE, lease(&json!({ "holderIdentity": "x" }))).unwrap();
    let a = candidate(&server, "a").start();
    until(SOON, "a knows x", || a.candidate().holder().is_some()).await;
    for second in 0..2 {
        let edit = |lease: &mut Value| {
            lease["spec"]["renewTime"] = format!("2026-01-01T00:00:0{second}.000000Z").into();
        };
        server.edit("x", LEASE, edit).unwrap();
        pass(SOON).await;
    }
    server.edit("x", LEASE, |lease| lease["spec"]["leaseDurationSeconds"] = 10.into()).unwrap();
    pass(SOON).await;
}

async fn a_long_wait() {
    let server = ApiServer::new();
    let held = json!({ "holderIdentity": "x", "leaseDurationSeconds": 40 });
    server.put("x", LEASE, lease(&held)).unwrap();
    let a = candidate(&server, "a").start();
    until(SOON, "a knows x", || a.candidate().holder().is_some()).await;
    server.delete("user", LEASE).unwrap();
    leads(&a).await;
}

async fn races_and_silence() {
    let server = ApiServer::new();
    free(&server);
    let _race = server.inject(Fault::status(409).user("a").verb("update").times(1));
    let _join = server.inject(Fault::status(409).user("b").verb("update").times(1));
    let (a, _) = leading(&server, "a").await;
    let b = flawed(&server, "b", Flaw::Mute(Arc::new(AtomicU32::new(0)))).start();
    pass(MINUTE).await;
    assert!(a.candidate().is_leader() && !b.candidate().is_leader());
}

async fn stops_that_fail() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let _refused = server.inject(Fault::status(500).verb("update"));
    a.stop().await;
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let cut_off = tokio::spawn(async move { write(&client).await });
    until(SOON, "a write is under way", || hang.hits() > 0).await;
    a.stop().await;
    cut_off.await.unwrap().unwrap_err();
}

async fn a_slow_stop() {
    let server = ApiServer::new();
    let election = build(&server, "a", builder("a").drain_timeout(MINUTE)).expect("a valid election");
    let client = gated(&server, &election, "a");
    let a = election.start();
    leads(&a).await;
    let hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let writing = tokio::spawn(async move { write(&client).await });
    until(SOON, "a write is under way", || hang.hits() > 0).await;
    a.stop().await;
    writing.await.unwrap().unwrap_err();
}

async fn no_fresh_client() {
    let server = ApiServer::new();
    let service = server.service().user("a");
    let connected = AtomicBool::new(false);
    let heard = Heard::of_this_thread();
    let connect = move || {
        if connected.swap(true, Ordering::SeqCst) {
            // A fresh client is made on a thread of its own.
            heard.on_this_thread();
            return Err(kube_client::Error::Service(io::Error::other("no credentials").into()));
        }
        Ok(Client::new(service.clone(), "default"))
    };
    let election = builder("a").build_in(&LeasePool::over(connect).expect("a client"));
    let _hang = server.inject(Fault::hang_before().verb("get").times(2));
    leads(&election.unwrap().start()).await;
}

async fn fresh_client_that_hangs() {
    let server = ApiServer::new();
    let service = server.service().user("a");
    let (end, ended) = mpsc::channel::<()>();
    let (connected, ended) = (AtomicBool::new(false), Mutex::new(ended));
    let connect = move || {
        if connected.swap(true, Ordering::SeqCst) {
            let _ = ended.lock().unwrap().recv();
        }
        Ok(Client::new(service.clone(), "default"))
    };
    let election = builder("a").build_in(&LeasePool::over(connect).expect("a client"));
    let running = election.unwrap().start();
    leads(&running).await;
    let hang = server.inject(Fault::hang_before().verb("update"));
    pass(MINUTE).await;
    drop(hang);
    leads(&running).await;
    drop(end);
}

async fn events() {
    let server = ApiServer::new();
    let client = Client::new(server.service().user("a"), "default");
    let refused = server.inject(Fault::forbidden().resource("events"));
    let a = build(&server, "a", builder("a").events(client)).unwrap().start();
    leads(&a).await;
    rob(&server, &a).await;
    drop(refused);
    rob(&server, &a).await;
    let hang = server.inject(Fault::hang_before().resource("events"));
    for _ in 0..10 {
        rob(&server, &a).await;
    }
    drop(hang);
    pass(MINUTE).await;
}

/// Takes the lease away, and lets the candidate acquire it again.
async fn rob(server: &ApiServer, running: &Running) {
    steal(server);
    until(SOON, "the candidate loses the lease", || !running.candidate().is_leader()).await;
    release(server);
    leads(running).await;
    pass(SOON).await;
}

async fn reconcilers() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let mut reconcile = gated_reconciler(|_: Arc<()>, client: Arc<Client>| async move {
        write(&client).await.map(|()| Action::await_change())
    });
    let client = Arc::new(client);
    let hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let cut_off = tokio::spawn(reconcile(Arc::new(()), client.clone()));
    until(SOON, "a write is under way", || hang.hits() > 0).await;
    steal(&server);
    assert_eq!(cut_off.await.unwrap().unwrap(), Action::await_change());
    reconcile(Arc::new(()), client).await.unwrap();
    drop(a);
}

async fn work() {
    let server = ApiServer::new();
    let terms = Arc::new(AtomicU32::new(0));
    let count = terms.clone();
    let work = move |_, _| {
        let term = count.fetch_add(1, Ordering::SeqCst);
        async move {
            assert!(term > 0, "a bug");
            // The work ignores its token.
            pending::<()>().await;
        }
    };
    let running = tokio::spawn(candidate(&server, "a").run_while_leading(pending::<()>(), work));
    let deaf = candidate(&server, "b").run_until(async {}, pending::<()>());
    assert!(within(MINUTE, "the workload is dropped", deaf).await.unwrap().output.is_none());
    until(MINUTE, "the second term", || terms.load(Ordering::SeqCst) == 2).await;
    steal(&server);
    pass(MINUTE).await;
    running.abort();
}

async fn asking() {
    let server = ApiServer::new();
    let ranked = |identity: &str, key: &str| {
        let priority = Priority::ranked(key, ["high", "low"]).unwrap();
        build(&server, identity, builder(identity).priority(priority)).unwrap().start()
    };
    let low = ranked("low", "low");
    leads(&low).await;
    let high = ranked("high", "high");
    leads(&high).await;
    high.stop().await;
    low.stop().await;
    // A holder that tells nothing, not even that it has stopped writing.
    let time = "2026-01-02T03:04:05.000000Z";
    let mut mute =
        lease(&json!({ "holderIdentity": "mute", "leaseDurationSeconds": 15, "leaseTransitions": 3,
                                  "acquireTime": time, "renewTime": time }));
    mute["metadata"]["annotations"] = json!({ "leader.istio.io/holder-key": "low" });
    server.delete("outsider", LEASE).unwrap();
    server.put("mute", LEASE, mute).unwrap();
    let high = ranked("high", "high");
    until(SOON, "it has taken the lease", || high.candidate().holder().as_deref() == Some("high")).await;
    high.stop().await;
}

/// Its last write hangs until the deadline.
async fn giving_way() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let cut_off = tokio::spawn(async move { write(&client).await });
    until(SOON, "a write is under way", || hang.hits() > 0).await;
    a.candidate().give_way();
    cut_off.await.unwrap().unwrap_err();
    drop(hang);
    leads(&a).await;
    a.stop().await;
}

async fn a_question_for_nobody() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let b = candidate(&server, "b").start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    let ask = |lease: &mut Value| {
        lease["metadata"]["annotations"]["kube-leader-gate/asked"] = "nobody".into();
    };
    server.edit("person", LEASE, ask).unwrap();
    pass(MINUTE).await;
    drop((a, b));
}

async fn a_pool_without_its_watch() {
    let server = ApiServer::new();
    let _refused = server.inject(Fault::forbidden().verb("watch"));
    let service = server.service().user("a");
    let pool = LeasePool::over(move || Ok(Client::new(service.clone(), "default"))).unwrap().share_watches();
    let a = builder("a").build_in(&pool).unwrap().start();
    leads(&a).await;
    pass(MINUTE).await;
}

/// In the next container of its pod after a short and after a long term, and in another pod.
async fn processes_of_one_name() {
    let server = ApiServer::new();
    let in_pod = |uid: &str| build(&server, "a", builder("a").pod_uid(uid)).unwrap().start();
    for (uid, has_led_for_long) in [("1", false), ("1", true), ("2", false)] {
        let first = in_pod("1");
        leads(&first).await;
        if has_led_for_long {
            let edit =
                |lease: &mut Value| lease["spec"]["acquireTime"] = "2026-01-01T00:00:00.000000Z".into();
            server.edit("person", LEASE, edit).unwrap();
        }
        drop(first);
        let second = in_pod(uid);
        leads(&second).await;
        second.stop().await;
    }
}

async fn a_comparison_that_panics() {
    let server = ApiServer::new();
    server.put("x", LEASE, lease(&json!({ "holderIdentity": "x", "leaseDurationSeconds": 5 }))).unwrap();
    let priority = Priority::new("a", |_| panic!("it breaks")).unwrap();
    leads(&build(&server, "a", builder("a").priority(priority)).unwrap().start()).await;
}

async fn a_withheld_answer() {
    leads(&withholding(&ApiServer::new()).0.start()).await;
}

async fn versions_without_numbers() {
    leads(&flawed(&ApiServer::new(), "a", Flaw::Spells).start()).await;
}

/// Over a socket, since only such a client has connections.
async fn connections() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let config: Config = endpoint.config("a");
    let election = Election::builder("default", "operator")
        .identity(Identity::new("a").unwrap())
        .timing(LeaseTiming::fast())
        .build(&config)
        .unwrap();
    let client = election.client(&config).unwrap();
    let a = election.start();
    leads(&a).await;
    write(&client).await.unwrap();
    steal(&server);
    let heard = Heard::of_this_thread();
    let is_closed = || heard.events().iter().any(|it| it.message.starts_with("connection closed"));
    until(MINUTE, "the connection is closed", is_closed).await;
}

/// The plugin's token has always run out, and in the end the plugin fails, too.
async fn credentials_that_cannot_be_renewed() {
    let folder = TempDir::new().unwrap();
    let works = folder.path().join("works");
    fs::write(&works, "").unwrap();
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": { "token": "a", "expirationTimestamp": "2020-01-01T00:00:00Z" },
    });
    let script = format!("[ -e {} ] && echo '{credential}'", works.display());
    let mut config = Config::new("http://127.0.0.1:1".parse().unwrap());
    config.auth_info = serde_json::from_value(json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": "sh", "args": ["-c", script],
    } }))
    .unwrap();
    let election = Election::builder("default", "operator")
        .identity(Identity::new("a").unwrap())
        .timing(LeaseTiming::fast())
        .build(&config)
        .unwrap();
    let heard = Heard::of_this_thread();
    let told = |what: &str| heard.events().iter().filter(|it| it.message.starts_with(what)).count();
    let before = told("lease calls fail");
    let _a = election.start();
    // The first call has had its credentials, and found no server.
    until(MINUTE, "a call fails", || told("lease calls fail") > before).await;
    fs::remove_file(works).unwrap();
    until(MINUTE, "it warns, and goes on", || told("cannot renew") > 1).await;
}
