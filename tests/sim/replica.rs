//! A replica, as a program would write it: a real kube client behind the crate's gate, an election, and a workload that
//! tries to write all the time.

use crate::{
    cache::Cache,
    gateway::identity,
    layered::Layered,
    line::Line,
    machine::Process,
    net::Shared,
    orders::{Computing, GiveUp},
    plan::{Machine, Work},
    seen::Away,
    work::write,
};
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use kube_client::{Client, client::ClientBuilder};
use kube_leader_gate::{
    CancellationToken, Election, Identity, Leadership,
    election::{LeaseEnd, Priority},
    leadership::Term,
    lease::LeasePool,
    testing::ApiServer,
};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{select, task::JoinSet, time::sleep};

/// How many writes one workload has under way.
const WRITES: usize = 3;
/// How long work goes on after it was told to end, at most. Its grace is longer.
const LINGERS: Duration = Duration::from_millis(3_500);

/// A running replica.
#[derive(Debug)]
pub struct Replica {
    pub process: Process,
    /// For each lease.
    pub leaderships: Vec<Leadership>,
    /// The term, by its token, in which the gate of each lease has closed.
    pub closed: Vec<Option<u64>>,
    /// The cache for which the gate of each lease waits, if this replica knows.
    pub caches: Vec<Option<Cache>>,
    pub stop: CancellationToken,
    pub give_up: Arc<GiveUp>,
    pub computing: Arc<Computing>,
    ends: tokio::sync::mpsc::UnboundedReceiver<(usize, LeaseEnd)>,
    /// How each election has left its lease.
    pub ended: Vec<Option<LeaseEnd>>,
}

#[derive(Clone)]
struct Site {
    machine: Machine,
    lease: usize,
    line: Line,
    stop: CancellationToken,
    give_up: Arc<GiveUp>,
    computing: Arc<Computing>,
    layered: Layered,
}

/// The token of the term whose work runs now.
type Working = Arc<Mutex<Option<u64>>>;

/// Ends with its work.
struct Works(Working);

impl Drop for Works {
    fn drop(&mut self) {
        *self.0.lock().expect("no panic") = None;
    }
}

pub fn lease_name(lease: usize) -> String {
    format!("lease-{lease}")
}

impl Replica {
    pub fn boot(
        net: &Shared,
        server: &ApiServer,
        number: usize,
        machine: Machine,
        leases: usize,
        mut process: Process,
        layered: &Layered,
    ) -> Self {
        let (stop, give_up) = (CancellationToken::new(), Arc::new(GiveUp::default()));
        let computing = Arc::new(Computing::default());
        let (tell, ends) = tokio::sync::mpsc::unbounded_channel();
        let (clock, idle) = (process.clock.clone(), process.idle.clone());
        let line = Line {
            net: net.clone(),
            machine: number,
            wall: machine.wall,
            leadership: None,
            born: process.born(),
        };
        let lease_line = line.clone();
        let connect = move || {
            idle.wait();
            Ok(Client::new(lease_line.clone(), "default"))
        };
        let site = |lease| Site {
            machine,
            lease,
            line: line.clone(),
            stop: stop.clone(),
            give_up: give_up.clone(),
            computing: computing.clone(),
            layered: layered.clone(),
        };
        let (leaderships, caches) = process.run(net, async {
            let pool = machine.pooled.then(|| LeasePool::over(connect.clone()).expect("a client"));
            // tokio wakes those who wait for one `watch` channel in an order that no seed decides. So only one election
            // shares the watch.
            let pool = pool.map(|pool| if leases == 1 { pool.share_watches() } else { pool });
            let elections = (0..leases).map(|lease| {
                let mut builder = Election::builder("default", lease_name(lease))
                    .identity(Identity::new(identity(number)).expect("a name"))
                    .timing(machine.timing())
                    .request_deadline(machine.request_deadline)
                    .clock(clock.clone());
                if let Some(key) = machine.key {
                    builder = builder.priority(Priority::ranked(key, ["high", "low"]).expect("a key"));
                }
                let of_layers = Client::new(line.clone(), "default");
                builder = layered.wrap_lock(number, machine.timing(), &of_layers, builder);
                let election = match &pool {
                    Some(pool) => builder.build_in(pool),
                    None => builder.build_in(&LeasePool::over(connect.clone()).expect("a client")),
                };
                let mut election = election.expect("a valid election");
                let cache = machine.knows.map(|_| Cache::new(&line, server, lease));
                if let Some(cache) = &cache {
                    election = cache.hold_shut(election);
                }
                let leadership = election.leadership();
                let (site, tell) = (site(lease), tell.clone());
                tokio::spawn(async move {
                    let end = site.contend(election).await;
                    // The simulation may be over.
                    let _ = tell.send((lease, end));
                });
                (leadership, cache)
            });
            elections.unzip()
        });
        Self {
            process,
            leaderships,
            closed: vec![None; leases],
            caches,
            stop,
            give_up,
            computing,
            ends,
            ended: vec![None; leases],
        }
    }

    /// Takes in which elections have ended. Returns whether all have.
    pub fn has_ended(&mut self) -> bool {
        while let Ok((lease, end)) = self.ends.try_recv() {
            self.ended[lease] = Some(end);
        }
        self.ended.iter().all(Option::is_some)
    }
}

impl Site {
    async fn contend(self, election: Election) -> LeaseEnd {
        let leadership = election.leadership();
        let line = Line { leadership: Some(leadership.clone()), ..self.line.clone() };
        let builder = ClientBuilder::new(line, "default");
        let client = self.layered.wrap_client(builder.with_layer(&election.layer()).build());
        let stop = self.stop.clone();
        match self.machine.work {
            Work::Gated => {
                let work = self.write_on(client, None, stop.cancelled_owned());
                election.run(work).await.expect("it was told to stop").lease
            }
            Work::WhileLeading => {
                let working = Working::default();
                let work = |ends: CancellationToken, term: Term| {
                    let working = working.clone();
                    let give_up = self.give_up.clone();
                    let lingers = if self.machine.abrupt { Duration::ZERO } else { LINGERS };
                    let ends = async move {
                        select! {
                            biased;
                            // It tidies up after its end, by writes.
                            () = ends.cancelled() => sleep(lingers.mul_f64(fastrand::f64())).await,
                            _ = give_up.told() => {}
                        }
                    };
                    let work = self.clone().write_on(client.clone(), term.fencing_token(), ends);
                    let (net, lease, machine) = (self.line.net.clone(), self.lease, self.line.machine);
                    let (mut work, works) = (Box::pin(work), Works(working));
                    poll_fn(move |cx| {
                        *works.0.lock().expect("no panic") = term.fencing_token();
                        if let Some(token) = term.fencing_token() {
                            net.get().works(lease, machine, token);
                        }
                        work.as_mut().poll(cx)
                    })
                };
                let run = election.run_while_leading(stop.clone().cancelled_owned(), work);
                let mut run = pin!(run);
                loop {
                    select! {
                        biased;
                        () = self.computing.is(true) => {}
                        run = &mut run => break run.expect("it was told to stop").lease,
                    }
                    // The work is in one poll, so nothing else that this task polls goes on.
                    let Some(token) = *working.lock().expect("no panic") else { continue };
                    select! {
                        biased;
                        () = stop.cancelled() => {}
                        () = self.computing.is(false) => {}
                        () = self.clone().write_on(client.clone(), Some(token), std::future::pending()) => {}
                    }
                }
            }
            Work::Beside => {
                let mut writers = JoinSet::new();
                writers.spawn(self.clone().write_on(client, None, std::future::pending()));
                let mut running = election.start();
                loop {
                    select! {
                        biased;
                        () = stop.cancelled() => break running.stop().await,
                        away = self.give_up.told() => {
                            let from = self.line.net.get().time();
                            select! {
                                biased;
                                () = stop.cancelled() => {}
                                _ = running.step_down(away) => {}
                            }
                            let Line { net, machine, born, .. } = self.line.clone();
                            let until = net.get().time();
                            net.get().seen.away.push(Away { machine, born, lease: self.lease, from, until });
                        }
                    }
                }
            }
        }
    }

    /// Writes until `until` is ready. `term` is the token of the term that this work is for, if it is for one.
    async fn write_on(self, client: Client, term: Option<u64>, until: impl Future<Output = ()>) {
        let mut under_way = FuturesUnordered::new();
        let mut until = pin!(until.fuse());
        for number in 0_u64.. {
            let pace = Duration::from_millis(self.machine.pace).mul_f64(0.5 + fastrand::f64());
            let mut pause = pin!(sleep(pace));
            loop {
                select! {
                    biased;
                    () = &mut until => {
                        // Dropping the writes leaves them without an answer.
                        while !self.machine.abrupt && under_way.next().await.is_some() {}
                        return;
                    }
                    Some(()) = under_way.next(), if !under_way.is_empty() => {}
                    () = &mut pause, if under_way.len() < WRITES => break,
                }
            }
            under_way.push(write(client.clone(), identity(self.line.machine), self.lease, term, number));
        }
    }
}
