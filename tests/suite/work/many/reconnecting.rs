//! Rule S9 for many elections: if a client answers none of them any more, all share a fresh one.

use super::replica::{Fate, MANY, Network, Replica, is_watch, over, shard};
use crate::support::pass;
use kube_leader_gate::{lease::LeasePool, testing::ApiServer};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
        mpsc,
    },
    time::Duration,
};

/// The connections of the first client die silently, for all elections.
#[tokio::test(start_paused = true)]
async fn s9_hung_client_is_replaced_once() {
    let server = ApiServer::new();
    let dead = Arc::new(AtomicBool::new(false));
    let is_dead = dead.clone();
    let network = Network::new(&server, "a", move |request, client| {
        let hangs = client == 0 && is_dead.load(Ordering::SeqCst) && !is_watch(request);
        if hangs { Fate::Hangs } else { Fate::Passes }
    });
    let mut a = Replica::start(&over(network.clone(), true), "a", MANY);
    a.leads(Duration::from_secs(1)).await;
    pass(Duration::from_secs(10)).await;
    dead.store(true, Ordering::SeqCst);
    pass(Duration::from_secs(10)).await;
    assert_eq!(a.losses(), [0; 0]);
    assert!(a.least_time_left(&[]) > Duration::from_millis(7500));
    let made = network.made.load(Ordering::SeqCst);
    // The elections notice within a retry period of 2 s, whose calls time out after 1.6 s.
    assert!((2..=3).contains(&made), "{made} clients");
}

/// Every call of every election hangs for some seconds: they ask for fresh clients together.
#[tokio::test(start_paused = true)]
async fn s9_outage_creates_few_clients() {
    let server = ApiServer::new();
    let dead = Arc::new(AtomicBool::new(false));
    let is_dead = dead.clone();
    let network = Network::new(&server, "a", move |request, _| {
        if is_dead.load(Ordering::SeqCst) && !is_watch(request) { Fate::Hangs } else { Fate::Passes }
    });
    let mut a = Replica::start(&over(network.clone(), true), "a", MANY);
    a.leads(Duration::from_secs(1)).await;
    pass(Duration::from_secs(10)).await;
    dead.store(true, Ordering::SeqCst);
    pass(Duration::from_secs(5)).await;
    dead.store(false, Ordering::SeqCst);
    pass(Duration::from_secs(10)).await;
    assert_eq!(a.losses(), [0; 0]);
    let made = network.made.load(Ordering::SeqCst);
    assert!((2..=6).contains(&made), "{made} clients in 5 s at a call timeout of 1.6 s");
}

/// One lease hangs for ever. The client answers the others, so it works, and all keep it.
#[tokio::test(start_paused = true)]
async fn s9_hanging_election_leaves_the_client_of_others_alone() {
    let server = ApiServer::new();
    let victim = format!("/{}", shard(7));
    let (seen, most) = (AtomicU32::new(0), Arc::new(AtomicU32::new(0)));
    let highest = most.clone();
    let network = Network::new(&server, "a", move |request, client| {
        if request.uri().path().ends_with(&victim) {
            return if seen.fetch_add(1, Ordering::SeqCst) > 4 { Fate::Hangs } else { Fate::Passes };
        }
        highest.fetch_max(client, Ordering::SeqCst);
        Fate::Passes
    });
    let mut a = Replica::start(&over(network.clone(), true), "a", MANY);
    a.leads(Duration::from_secs(1)).await;
    pass(Duration::from_secs(35)).await;
    assert_eq!(a.losses(), [7]);
    assert_eq!((network.made.load(Ordering::SeqCst), most.load(Ordering::SeqCst)), (1, 0));
}

/// A credential plugin that hangs cannot be stopped. The first client dies.
#[tokio::test(start_paused = true)]
async fn s9_second_client_is_made_while_first_hangs() {
    let mut scene = Hanging::begin(1).await;
    scene.dead.store(true, Ordering::SeqCst);
    pass(Duration::from_secs(20)).await;
    assert_eq!(scene.a.losses(), [0; 0]);
    assert_eq!(scene.a.elections[0].candidate().trouble(), None);
    assert_eq!(scene.asked.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn s9_two_hanging_plugins_are_trouble_and_no_more_begin() {
    let mut scene = Hanging::begin(2).await;
    scene.dead.store(true, Ordering::SeqCst);
    pass(Duration::from_secs(120)).await;
    let trouble = scene.a.elections[0].candidate().trouble().unwrap_or_default().to_string();
    assert!(trouble.starts_with("lease calls stay on a connection that hangs: "), "{trouble}");
    assert!(trouble.contains("check the credential plugin"), "{trouble}");
    assert_eq!(scene.asked.load(Ordering::SeqCst), 3);
    assert_eq!(scene.a.losses().len(), 5);
    // They end after all.
    scene.hung.clear();
    scene.a.leads(Duration::from_secs(30)).await;
    assert_eq!(scene.a.elections[0].candidate().trouble(), None);
}

/// Five elections whose first fresh clients are not made until `hung` is cleared.
struct Hanging {
    a: Replica,
    dead: Arc<AtomicBool>,
    asked: Arc<AtomicU32>,
    hung: Vec<mpsc::Sender<()>>,
}

impl Hanging {
    async fn begin(plugins: u32) -> Self {
        let (dead, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let is_dead = dead.clone();
        let network = Network::new(&ApiServer::new(), "a", move |request, client| {
            let hangs = client == 0 && is_dead.load(Ordering::SeqCst) && !is_watch(request);
            if hangs { Fate::Hangs } else { Fate::Passes }
        });
        let (hung, waits): (Vec<_>, Vec<_>) = (0..plugins).map(|_| mpsc::channel::<()>()).unzip();
        let (waits, count) = (Mutex::new(waits), asked.clone());
        let pool = LeasePool::over(move || {
            if count.fetch_add(1, Ordering::SeqCst) > 0 {
                let wait = waits.lock().unwrap().pop();
                wait.map(|wait| wait.recv());
            }
            Ok(network.connect())
        });
        let a = Replica::start(&pool.unwrap().share_watches(), "a", 5);
        a.leads(Duration::from_secs(1)).await;
        Self { a, dead, asked, hung }
    }
}
