//! Fencing tokens over random histories: each term's token is larger than every earlier term's, whichever candidate led.

use crate::{
    locks::flawed::{Flaw, flawed},
    support::{FIRST, LEASE, build, builder, pass, within},
};
use fastrand::Rng;
use futures_util::{FutureExt, StreamExt};
use kube_leader_gate::{
    Candidate,
    election::{Priority, Running},
    leadership::Term,
    testing::{ApiServer, Fault, WatchBreak},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::{sync::mpsc, task::JoinSet};

const SEEDS: u64 = 12;
const STEPS: usize = 40;
const CANDIDATES: usize = 3;

/// A term and the candidate that led in it.
type Gain = (&'static str, Term);

/// Replicas that are stopped, killed and restarted under their own names.
struct Crowd {
    server: ApiServer,
    running: Vec<Option<Running>>,
    gains: mpsc::UnboundedSender<Gain>,
    followed: JoinSet<()>,
}

const NAMES: [&str; CANDIDATES] = ["a", "b", "c"];

impl Crowd {
    /// The last one has a priority, and takes the lease from live holders.
    fn start(&mut self, place: usize) {
        let name = NAMES[place];
        let mut builder = builder(name);
        if place == CANDIDATES - 1 {
            builder = builder.priority(Priority::ranked("high", ["high", ""]).expect("a priority"));
        }
        let running = build(&self.server, name, builder).expect("an election").start();
        self.followed.spawn(follow(name, running.candidate().clone(), self.gains.clone()));
        self.running[place] = Some(running);
    }
}

/// Reports each term, with its token as first seen.
async fn follow(name: &'static str, candidate: Candidate, gains: mpsc::UnboundedSender<Gain>) {
    let mut changes = candidate.changes();
    while let Some(state) = changes.next().await {
        if let Some(term) = state.term {
            assert!(candidate.term().is_none_or(|now| now == term), "the token changes within a term");
            // The script may have ended.
            gains.send((name, term)).ok();
        }
    }
}

/// Plays one script. Returns each candidate's terms in the order in which they came.
async fn play(seed: u64, cases: &mut BTreeSet<&'static str>) -> (ApiServer, Vec<Gain>) {
    let mut rng = Rng::with_seed(seed);
    let (gains, mut gained) = mpsc::unbounded_channel();
    let mut crowd = Crowd {
        server: ApiServer::new(),
        running: (0..CANDIDATES).map(|_| None).collect(),
        gains,
        followed: JoinSet::new(),
    };
    (0..CANDIDATES).for_each(|place| crowd.start(place));
    let mut faults = Vec::new();
    for _ in 0..STEPS {
        let place = rng.usize(..CANDIDATES);
        let lease = || Fault::hang_after().verb("update").resource("leases").times(1);
        let what =
            ["restart", "crash", "step down", "delete", "free", "steal", "lose", "hide", "lift", "wait"];
        match rng.choice(what).expect("one of them") {
            "restart" => {
                if let Some(running) = crowd.running[place].take() {
                    running.stop().await;
                }
                crowd.start(place);
            }
            "crash" => {
                drop(crowd.running[place].take());
                crowd.start(place);
            }
            "step down" => {
                if let Some(running) = &mut crowd.running[place] {
                    running.step_down(Duration::from_secs(2)).await;
                }
            }
            // Without a lease, the server refuses these.
            "delete" => drop(crowd.server.delete("outsider", LEASE)),
            "free" => {
                let free = |lease: &mut serde_json::Value| lease["spec"]["holderIdentity"] = "".into();
                drop(crowd.server.edit("outsider", LEASE, free));
            }
            "steal" => {
                let steal = |lease: &mut serde_json::Value| {
                    let transitions = lease["spec"]["leaseTransitions"].as_u64().unwrap_or(0);
                    lease["spec"]["holderIdentity"] = "outsider".into();
                    lease["spec"]["leaseTransitions"] = (transitions + 1).into();
                };
                drop(crowd.server.edit("outsider", LEASE, steal));
            }
            "lose" => {
                let kinds = [lease(), Fault::drop_after().verb("create").resource("leases").times(1)];
                faults.push(crowd.server.inject(rng.choice(kinds).expect("one of them")));
            }
            "hide" => {
                crowd.server.break_watches(|_| true, WatchBreak::Cut);
                faults.push(crowd.server.inject(Fault::forbidden().verb("watch").user(NAMES[place])));
            }
            "lift" => faults.clear(),
            _ => {}
        }
        pass(Duration::from_millis(rng.u64(..12_000))).await;
    }
    faults.clear();
    pass(Duration::from_secs(30)).await;
    crowd.followed.abort_all();
    let mut terms = Vec::new();
    while let Some(Some(gain)) = gained.recv().now_or_never() {
        if !terms.contains(&gain) {
            terms.push(gain);
        }
    }
    let uids: BTreeSet<_> = terms.iter().map(|(_, term)| term.lease_uid()).collect();
    cases.extend((uids.len() > 1).then_some("another lease"));
    cases.extend(terms.windows(2).any(|pair| pair[0].0 == pair[1].0).then_some("the same candidate again"));
    cases.extend(terms.windows(2).any(|pair| pair[0].0 != pair[1].0).then_some("another candidate"));
    (crowd.server, terms)
}

#[test]
fn fencing_tokens_grow_over_every_history() {
    let (mut cases, mut count) = (BTreeSet::new(), 0);
    for seed in 0..SEEDS {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().expect("a runtime");
        let (server, terms) = runtime.block_on(play(seed, &mut cases));
        // The server's own order of the terms: a late answer does not make a term a later one.
        let mut order = BTreeMap::new();
        for (place, lease) in server.write_log().into_iter().filter_map(|write| write.lease).enumerate() {
            let transitions = lease.lease_transitions.and_then(|it| u64::try_from(it).ok());
            order.entry((lease.uid, lease.holder_identity, transitions.unwrap_or(0))).or_insert(place);
        }
        let mut tokens = BTreeMap::new();
        for (name, term) in &terms {
            let key = (term.lease_uid().to_owned(), (*name).to_owned(), term.transitions());
            let place =
                order.get(&key).unwrap_or_else(|| panic!("seed {seed}: {key:?} never stood in the lease"));
            let token = term.fencing_token().expect("the server's versions are numbers");
            assert_eq!(tokens.insert(*place, token), None, "seed {seed}: two tokens in one term");
        }
        count += tokens.len();
        let tokens: Vec<_> = tokens.into_values().collect();
        assert!(tokens.is_sorted_by(|one, next| one < next), "seed {seed}: {tokens:?} of {terms:?}");
    }
    assert!(count > 5 * usize::try_from(SEEDS).unwrap(), "only {count} terms");
    assert_eq!(cases.len(), 3, "{cases:?}");
}

#[tokio::test(start_paused = true)]
async fn server_without_numbers_gives_no_token() {
    let a = flawed(&ApiServer::new(), "a", Flaw::Spells).start();
    let term = within(FIRST, "it leads", a.candidate().elected()).await;
    assert_eq!(term.fencing_token(), None);
    // The term goes on as any other.
    pass(Duration::from_secs(60)).await;
    assert_eq!(a.candidate().term(), Some(term));
}

/// The version of the write by which the candidate took the lease, or of a later one of the same term.
#[tokio::test(start_paused = true)]
async fn token_is_a_version_of_the_lease() {
    let server = ApiServer::new();
    let a = build(&server, "a", builder("a")).unwrap().start();
    let term = within(FIRST, "it leads", a.candidate().elected()).await;
    let version = server.object(LEASE).unwrap()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    assert_eq!(term.fencing_token().map(|token| token.to_string()), Some(version));
    pass(Duration::from_secs(60)).await;
    assert_eq!(a.candidate().term(), Some(term), "renewals change nothing");
}
