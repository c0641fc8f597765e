//! The world of a run: the API server, the machines, and the time, which moves in steps from one thing that happens to the
//! next.

use crate::{
    gates, gateway,
    kubelet::Kubelets,
    layered::Layered,
    machine::{Process, Step},
    net::Shared,
    plan::{self, Plan, What},
    replica::{Replica, lease_name},
    work,
};
use fastrand::Rng;
use kube_leader_gate::{
    election::LeaseEnd,
    testing::{ApiServer, Fault, FaultGuard},
};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::time::Instant;

/// The longest step, in milliseconds. A message that a timer sends within a step arrives at its end at the earliest.
const STEP: u64 = 20;
/// How late a fence hears of its lease, in milliseconds: not at all, so late, or twice so late.
const FENCE_LAGS: u64 = 120;

#[derive(Debug)]
pub struct World<'a> {
    pub plan: &'a Plan,
    pub net: Shared,
    pub server: ApiServer,
    pub gateway: Process,
    /// The beginning of the run, on the clock of the API server.
    pub epoch: Instant,
    pub hosts: Vec<Host>,
    /// Which machines each fault has hit.
    pub hit: BTreeMap<usize, Vec<usize>>,
    pub guards: BTreeMap<usize, Vec<FaultGuard>>,
    /// They make the watches of caches late.
    _late: Vec<FaultGuard>,
    /// How often each kind of fault has hit something.
    pub counts: BTreeMap<String, u64>,
    /// Which kinds of faults have hit something.
    pub kinds: BTreeSet<String>,
    /// Processes that have ended in order: when, on which machine, and how they left each lease.
    pub exits: Vec<Exit>,
    /// The faults that machines have had.
    pub struck: Vec<Struck>,
    /// When a process has ended on a machine that the kubelet could see.
    pub ended: Vec<(usize, u64)>,
    pub kubelets: Kubelets,
}

/// A fault that has hit a machine.
#[derive(Clone, Copy, Debug)]
pub struct Struck {
    pub machine: usize,
    pub at: u64,
    pub until: u64,
    pub what: What,
}

/// A process that was told to stop, and did.
#[derive(Debug)]
pub struct Exit {
    pub machine: usize,
    pub born: u64,
    pub at: u64,
    /// When the next process on this machine began.
    pub until: u64,
    pub ends: Vec<LeaseEnd>,
}

/// A machine, with or without a process.
#[derive(Debug)]
pub struct Host {
    pub machine: plan::Machine,
    chance: Rng,
    pub replica: Option<Replica>,
    /// How many faults freeze it now.
    pub frozen: u32,
    pub asleep: u32,
    /// How seldom it gets the processor, by fault.
    pub starved: BTreeMap<usize, u64>,
    turn: u64,
    /// When it was told to stop.
    pub told: Option<u64>,
}

impl<'a> World<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let net = Shared::new(plan.seed, plan.machines.len(), plan.leases, plan.slowest());
        net.get().seen.overlaps = plan.overlaps();
        net.get().fence = plan.layers.fence.then(|| plan.seed % 3 * FENCE_LAGS);
        let mut chance = Rng::with_seed(!plan.seed);
        let server = ApiServer::new();
        let mut gateway = Process::new(None, 0, 0, chance.fork());
        let epoch = gateway.run(&net, async { Instant::now() });
        for lease in 0..plan.leases {
            let map =
                json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": work::name(lease) } });
            let put =
                async { server.put("outsider", &work::path(lease), map).map(drop).expect("a config map") };
            gateway.run(&net, put);
        }
        let late = plan.machines.iter().enumerate().filter_map(|(host, machine)| {
            let late = Fault::late_watch(Duration::from_millis(machine.knows?));
            Some(server.inject(late.user(gateway::identity(host)).resource("configmaps")))
        });
        let late = late.collect();
        let hosts = plan.machines.iter().map(|machine| Host {
            machine: *machine,
            chance: chance.fork(),
            replica: None,
            frozen: 0,
            asleep: 0,
            starved: BTreeMap::new(),
            turn: 0,
            told: None,
        });
        let hosts = hosts.collect();
        let (hit, guards, counts, kinds, exits, struck) = Default::default();
        let kubelets = Kubelets::new(chance.fork());
        let ended = vec![];
        let mut world = Self {
            plan,
            net,
            server,
            gateway,
            epoch,
            hosts,
            hit,
            guards,
            _late: late,
            counts,
            kinds,
            exits,
            struck,
            ended,
            kubelets,
        };
        if plan.layers.early {
            (0..world.hosts.len()).for_each(|host| world.make_pod(host));
        }
        (0..world.hosts.len()).for_each(|host| world.boot(host));
        world
    }

    pub fn now(&self) -> u64 {
        self.net.get().now
    }

    pub fn note(&self, text: &str) {
        self.net.get().note(text);
    }

    /// Starts a process on a machine that has none.
    pub fn boot(&mut self, host: usize) {
        let now = self.now();
        if self.hosts[host].replica.is_some() {
            return;
        }
        self.report_begin(host);
        let site = Layered { layers: self.plan.layers, pod: self.pod_uid(host), machines: self.hosts.len() };
        let Host { machine, chance, replica, told, .. } = &mut self.hosts[host];
        *told = None;
        let process = Process::new(Some(host), now, machine.drift, chance.fork());
        *replica =
            Some(Replica::boot(&self.net, &self.server, host, *machine, self.plan.leases, process, &site));
        self.exits.iter_mut().filter(|it| it.machine == host).for_each(|it| it.until = it.until.min(now));
        self.note(&format!("m{host} boots"));
    }

    /// Ends a process at once.
    pub fn kill(&mut self, host: usize, hangs_up: bool) {
        let Some(replica) = self.hosts[host].replica.take() else { return };
        self.note(&format!("m{host} is killed"));
        self.end_process(host, replica, hangs_up);
        if hangs_up {
            self.ended.push((host, self.now()));
            self.report_end(host);
        }
    }

    /// The process is gone. tokio drops its tasks in an order that no seed decides, so their connections are closed after
    /// that, in their own order.
    fn end_process(&mut self, host: usize, replica: Replica, hangs_up: bool) {
        self.net.get().cables[host].mute = true;
        drop(replica);
        let mut net = self.net.get();
        net.cables[host].mute = false;
        if hangs_up {
            net.hang_up_all(host);
        }
    }

    /// Tells a process to stop.
    pub fn stop(&mut self, host: usize) {
        let now = self.now();
        let Host { replica, told, .. } = &mut self.hosts[host];
        if let Some(replica) = replica.as_ref().filter(|_| told.is_none()) {
            *told = Some(now);
            replica.stop.cancel();
            self.note(&format!("m{host} is told to stop"));
        }
    }

    /// Lets time pass until the next thing happens, or until `end`.
    pub fn step(&mut self, end: u64) {
        gateway::deliver(&self.net, &self.server, self.gateway.runtime().handle());
        self.kubelets_report();
        let (now, end) = {
            let mut net = self.net.get();
            let end = net.next_arrival().unwrap_or(u64::MAX).min(net.now + STEP).min(end).max(net.now + 1);
            net.next = end;
            (net.now, end)
        };
        for host in &mut self.hosts {
            host.step(&self.net, now, end);
        }
        for lease in 0..self.plan.leases {
            gates::look_at_caches(&self.net, &self.server, lease, replicas(&mut self.hosts));
        }
        self.gateway.step(&self.net, now, end, Step::Run);
        self.net.get().now = end;
        (0..self.hosts.len()).for_each(|host| self.take_in_an_exit(host));
        for lease in 0..self.plan.leases {
            gates::look(&self.net, lease, replicas(&mut self.hosts));
        }
    }

    fn take_in_an_exit(&mut self, host: usize) {
        let at = self.now();
        let Some(replica) = &mut self.hosts[host].replica else { return };
        if !replica.has_ended() {
            return;
        }
        let born = replica.process.born();
        let ends: Vec<_> = replica.ended.iter().flatten().copied().collect();
        self.note(&format!("m{host} has stopped: {ends:?}"));
        self.exits.push(Exit { machine: host, born, at, until: u64::MAX, ends });
        if let Some(replica) = self.hosts[host].replica.take() {
            self.end_process(host, replica, true);
            self.ended.push((host, at));
            self.report_end(host);
        }
    }

    /// The machine that holds a lease, as the API server has it.
    pub fn holder(&self, lease: usize) -> Option<usize> {
        let object = self.server.object(&path(lease))?;
        let holder = object["spec"]["holderIdentity"].as_str()?;
        (0..self.hosts.len()).find(|host| gateway::identity(*host) == holder)
    }
}

impl Host {
    fn step(&mut self, net: &Shared, from: u64, to: u64) {
        let Some(replica) = &mut self.replica else { return };
        let waits = self.frozen > 0 || !self.starved.is_empty() && from < self.turn;
        let how = match (self.asleep > 0, waits) {
            (true, _) => Step::Sleep,
            (false, true) => Step::Wait,
            (false, false) => Step::Run,
        };
        if how == Step::Run {
            self.turn = to + self.starved.values().copied().max().unwrap_or(0);
        }
        replica.process.step(net, from, to, how);
    }
}

/// The running replicas, with the numbers of their machines.
fn replicas(hosts: &mut [Host]) -> impl Iterator<Item = (usize, &mut Replica)> {
    hosts.iter_mut().enumerate().filter_map(|(number, host)| Some((number, host.replica.as_mut()?)))
}

pub fn path(lease: usize) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/default/leases/{}", lease_name(lease))
}
