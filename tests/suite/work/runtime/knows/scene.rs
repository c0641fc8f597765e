//! Leadership moves from replica to replica while an outsider creates parents, and each must get one child.

use super::operator::{Adapt, PARENT, Replica, start};
use crate::support::{FIRST, candidate, gated, pass, until};
use kube_leader_gate::testing::{ApiServer, Fault};
use serde_json::json;
use std::{cell::Cell, collections::BTreeMap, fmt, time::Duration};

const REPLICAS: [&str; 3] = ["a", "b", "c"];

const CHILDREN: &str = "/api/v1/namespaces/default/secrets";

/// An outsider creates a parent each time that so much has passed.
const BETWEEN_PARENTS: Duration = Duration::from_millis(10);

/// Each parent with such a number changes before the next one comes. So the operator looks at it again while a late watch
/// has not shown its child.
const CHANGES: usize = 10;

/// How long each leader leads. A candidate that has given way rests for a retry period of 2 s, and up to a fifth more:
/// after two such terms of other replicas it contends again, so no handover waits for it.
const TERM: Duration = Duration::from_millis(1250);

/// Long enough for a handover, even if the next leader first waits for a late watch.
const HANDOVER: Duration = Duration::from_secs(5);

/// Long enough for everything that has begun to end, beside what is late.
const REST: Duration = Duration::from_secs(2);

#[derive(Clone, Copy)]
pub struct Scene {
    /// How late the watch of the children is on each replica.
    pub late: Duration,
    /// For how many terms parents come.
    pub rounds: usize,
    /// Whether the leader gives way after each term.
    pub gives_way: bool,
    /// Changes each election before it begins.
    pub adapt: Adapt,
}

#[derive(Debug)]
pub struct Outcome {
    pub late: Duration,
    pub handovers: usize,
    pub parents: usize,
    /// Parents with more than one child.
    pub doubles: usize,
    /// Parents without a child.
    pub without: usize,
    /// The longest time between the order to give way and the next leader's open gate.
    pub longest: Duration,
}

// === impl Scene ===

impl Scene {
    /// Plays the scene until nothing happens any more, and counts.
    pub async fn play(self) -> Outcome {
        let server = ApiServer::new();
        let _late = server.inject(Fault::late_watch(self.late).resource("secrets"));
        let replicas = REPLICAS.map(|identity| {
            let election = candidate(&server, identity);
            let client = gated(&server, &election, identity);
            start(election, client.clone(), client, self.adapt)
        });
        until(FIRST + HANDOVER, "a replica leads", || leader(&replicas).is_some()).await;
        let parents = Cell::new(0);
        let handovers = tokio::select! {
            () = create_parents(&server, &parents) => unreachable!("parents come for ever"),
            handovers = self.lead_by_turns(&replicas) => handovers,
        };
        pass(self.late + REST).await;
        let outcome = Outcome::count(&server, self.late, parents.get(), &handovers);
        let children = server.objects(CHILDREN).len();
        assert_eq!(replicas.map(|it| it.cached()), [children; 3], "each cache is complete in the end");
        outcome
    }

    /// How long each handover took.
    async fn lead_by_turns(self, replicas: &[Replica]) -> Vec<Duration> {
        let mut handovers = Vec::new();
        for _ in 0..self.rounds {
            pass(TERM).await;
            let former = leader(replicas).expect("a leader that no candidate challenges");
            if self.gives_way {
                let began = tokio::time::Instant::now();
                replicas[former].candidate().give_way();
                let moved = || leader(replicas).is_some_and(|it| it != former);
                until(HANDOVER, "another replica leads", moved).await;
                handovers.push(began.elapsed());
            }
        }
        pass(TERM).await;
        handovers
    }
}

fn leader(replicas: &[Replica]) -> Option<usize> {
    replicas.iter().position(|it| it.candidate().can_write())
}

async fn create_parents(server: &ApiServer, count: &Cell<usize>) {
    for number in 0.. {
        let path = format!("/api/v1/namespaces/default/configmaps/parent-{number}");
        server.put("outsider", &path, json!({})).expect("a valid parent");
        count.set(number + 1);
        pass(BETWEEN_PARENTS).await;
        if number % CHANGES == 0 {
            server.edit("outsider", &path, |it| it["data"] = json!({ "k": "v" })).expect("it is there");
        }
    }
}

// === impl Outcome ===

impl Outcome {
    /// Counts what the server holds.
    fn count(server: &ApiServer, late: Duration, parents: usize, handovers: &[Duration]) -> Self {
        let mut children = BTreeMap::<String, usize>::new();
        for child in server.objects(CHILDREN) {
            let parent = child["metadata"]["labels"][PARENT].as_str().expect("each child has a parent");
            *children.entry(parent.to_owned()).or_default() += 1;
        }
        Self {
            late,
            handovers: handovers.len(),
            parents,
            doubles: children.values().filter(|count| **count > 1).count(),
            without: parents - children.len(),
            longest: handovers.iter().max().copied().unwrap_or_default(),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { late, handovers, parents, doubles, without, longest } = self;
        write!(
            f,
            "the watch is {late:?} late: {handovers} handovers of at most {longest:?}, {parents} parents, {doubles} with \
             more than one child, {without} without a child"
        )
    }
}
