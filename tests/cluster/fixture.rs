//! Tests of the fixture itself.

use crate::{
    apiserver::{Audit, Cluster, Guarded, assets, shared},
    support::PATIENCE,
};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use kube_client::{
    Api,
    api::{ListParams, PostParams},
};
use kube_leader_gate::testing::Judge;
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};
use std::{
    env,
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
    time::Duration,
};
use tokio::time::{sleep, timeout};

fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object")
}

pub async fn judge_reads_requests_from_audit_log() {
    let cluster = shared().await;
    let namespace = cluster.namespace().await;
    let params = PostParams::default();
    for user in ["candidate-0", "candidate-1"] {
        let leases: Api<Lease> = Api::namespaced(cluster.client(user), &namespace);
        let mut lease: Lease = match leases.get_opt("it").await.unwrap() {
            Some(lease) => lease,
            None => leases.create(&params, &object(json!({ "metadata": { "name": "it" } }))).await.unwrap(),
        };
        lease.spec.get_or_insert_default().holder_identity = Some(user.to_owned());
        leases.replace("it", &params, &lease).await.unwrap();
    }
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("candidate-0"), &namespace);
    maps.create(&params, &object(json!({ "metadata": { "name": "late" } }))).await.unwrap();

    let mut log = cluster.write_log();
    // Other tests have candidates with these names.
    log.retain(|write| write.namespace.as_deref() == Some(&namespace));
    let verdict = Judge::new(&namespace, "it", ["candidate-0", "candidate-1"]).verdict(&log);
    let holders: Vec<_> = verdict.terms.iter().map(|it| &*it.holder).collect();
    assert_eq!(holders, ["candidate-0", "candidate-1"]);
    let overlaps: Vec<_> = verdict.overlaps().map(|it| (&*it.user, &*it.path)).collect();
    assert_eq!(overlaps, [("candidate-0", &*format!("/api/v1/namespaces/{namespace}/configmaps"))]);
    assert!(
        cluster.requests().iter().any(|it| it.verb == "get" && it.object_ref.name.as_deref() == Some("it"))
    );
}

/// The log of a server that was killed in the middle of an event, even within a character, and the event after it.
pub fn torn_audit_line_loses_no_other_line() {
    let event = |uri: &str| {
        format!(
            r#"{{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","requestURI":"{uri}","verb":"get","user":{{"username":"a"}},"requestReceivedTimestamp":"2026-01-01T00:00:00.000000Z","stageTimestamp":"2026-01-01T00:00:00.000001Z"}}"#
        )
    };
    let torn = event("/\u{e4}");
    let within = torn.find('\u{e4}').unwrap() + 1;
    for length in [5, 60, within] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.log");
        let mut log = (event("/1") + "\n").into_bytes();
        log.extend(&torn.as_bytes()[..length]);
        log.extend((event("/2") + "\n" + &event("/3") + "\n").as_bytes());
        std::fs::write(&file, log).unwrap();
        let events = Audit::open(&file).unwrap().read();
        let seen: Vec<_> = events.iter().map(|it| &*it.request_uri).collect();
        assert_eq!(seen, ["/1", "/2", "/3"], "{length}");
    }
}

pub async fn user_has_the_permissions_of_its_kind() {
    let cluster = shared().await;
    let list = async |user| {
        let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client(user));
        maps.list(&ListParams::default()).await.map(drop)
    };
    list("admin").await.unwrap();
    list("candidate-31").await.unwrap();
    let Err(kube_client::Error::Api(status)) = list("restricted-0").await else { panic!("it may list") };
    assert_eq!((status.code, &*status.reason), (403, "Forbidden"));
}

pub async fn kubectl_reaches_the_server() {
    let cluster = shared().await;
    let said = cluster.kubectl("candidate-0").args(["auth", "whoami", "-o", "name"]).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

pub async fn server_survives_freeze_and_restart_and_cleans_up() {
    let cluster = Cluster::start(assets()).await;
    let folder = cluster.folder().to_owned();
    let namespace = cluster.namespace().await;
    let found = || async {
        let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(cluster.client("admin"));
        namespaces.get(&namespace).await.map(drop)
    };
    cluster.freeze();
    timeout(Duration::from_millis(300), found()).await.expect_err("it is frozen");
    cluster.thaw();
    timeout(PATIENCE, found()).await.expect("in time").unwrap();
    let port = cluster.addr();
    timeout(PATIENCE * 3, cluster.restart()).await.expect("in time");
    assert_eq!(cluster.addr(), port);
    found().await.unwrap();
    let log = cluster.requests();
    let of_admin: Vec<_> = log.iter().filter(|it| it.user.username == "admin").collect();
    assert_eq!(
        of_admin.iter().filter(|it| it.verb == "create" && it.object_ref.resource == "namespaces").count(),
        1
    );
    let last = of_admin.last().expect("it asked");
    assert_eq!(
        (&*last.verb, last.object_ref.name.as_deref()),
        ("get", Some(&*namespace)),
        "one log throughout"
    );
    drop(cluster);
    timeout(PATIENCE, async {
        while folder.exists() {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("its folder goes");
}

/// This environment variable marks the process that the next test kills.
pub const VICTIM: &str = "VICTIM";

/// What the marked process does instead of testing.
pub fn victim() -> ! {
    let child = Guarded::spawn(Command::new("sleep").arg("600")).unwrap();
    let mut frozen = Command::new("sh");
    frozen.args(["-c", "echo; exec sleep 600"]);
    let mut frozen = Guarded::spawn_with(&frozen, Stdio::piped(), Stdio::inherit()).unwrap();
    // The guard exists once the program runs. If the program is frozen before that, no guard ends it.
    frozen.stdout().unwrap().read_exact(&mut [0]).unwrap();
    frozen.freeze();
    println!("\nchildren {} {}", child.pid().as_raw_nonzero(), frozen.pid().as_raw_nonzero());
    loop {
        std::thread::park();
    }
}

pub async fn children_end_when_parent_process_is_killed() {
    let mut victim = Command::new(env::current_exe().unwrap());
    victim.env(VICTIM, "yes");
    let mut victim = Guarded::spawn_with(&victim, Stdio::piped(), Stdio::inherit()).unwrap();
    let lines = BufReader::new(victim.stdout().unwrap()).lines();
    let line =
        lines.map_while(Result::ok).find(|it| it.starts_with("children")).expect("it says who they are");
    let pids: Vec<Pid> =
        line.split(' ').skip(1).map(|it| Pid::from_raw(it.parse().unwrap()).unwrap()).collect();
    assert!(pids.len() == 2 && pids.iter().all(|&it| test_kill_process(it).is_ok()), "they run");
    victim.kill();
    timeout(PATIENCE, async {
        // The process that inherits a dead child may take its time to reap it.
        while pids.iter().any(|&it| test_kill_process(it).is_ok() && !is_dead(it)) {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("they end");
}

fn is_dead(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|it| it.starts_with(['Z', 'X']))
}
