//! One run of a plan, from the first process to the last, and what came of it.

use crate::{
    gateway::{PAST, identity},
    judge,
    messages::Messages,
    plan::{Plan, What},
    seen::Openings,
    world::{Exit, World},
};
use kube_leader_gate::{LeaseTiming, election::LeaseEnd};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    time::Duration,
};

/// The first write of a run comes this soon.
const FIRST: u64 = 3_000;
/// So much later no gate waits in vain any more. A cache without its watch learns that after 11 s, waits for an answer that never
/// comes for 4 s, pauses, and is late twice: so 20 s after the last fault each cache is well. A candidate that takes the lease
/// just before that waits for 10 s, and gives it up.
const CATCHES_UP: u64 = 30_000;
/// A candidate whose gate has waited in vain stays away for so long, and twice as long each further time.
const AWAY: u64 = 1_000;
const LONGEST_AWAY: u64 = 60_000;
/// How long a run goes on after all is well again.
const STEADY: u64 = 1_000;
/// After a release, another candidate writes this long after a lease duration at most. No candidate waits for the end of the
/// released lease, but one that an outage has kept from seeing how an earlier holder ended waits for that holder's time.
const FOLLOWS: u64 = 1_000;

#[derive(Debug, Default)]
pub struct Outcome {
    pub log: Vec<String>,
    pub violations: BTreeSet<String>,
    /// How often each kind of fault has hit something.
    pub faults: BTreeMap<String, u64>,
    /// Which kinds of faults have hit something.
    pub kinds: BTreeSet<String>,
    /// How often terms ended and followed each other, by kind.
    pub terms: BTreeMap<String, u64>,
    pub writes: u64,
    /// Whether the gates of some machines have waited for caches.
    pub knows: bool,
    pub openings: Openings,
    /// How long it took until a workload wrote again after the last fault.
    pub recovered: u64,
    /// How long it took until another workload wrote after the lease was released.
    pub handed_over: u64,
    /// Simulated milliseconds.
    pub length: u64,
    /// Log messages of the crate.
    pub messages: u64,
}

/// Plays a plan. If `keep`, the log has the messages of the crate.
pub fn run(plan: &Plan, keep: bool) -> Outcome {
    let mut world = World::new(plan);
    let messages = Messages { net: world.net.clone(), keep };
    tracing::subscriber::with_default(messages, || play(&mut world))
}

/// How long after the last fault a workload writes again, at most.
///
/// A candidate that has lost contact reads again after one retry period and a call that hangs. If it then sees a lease of
/// another candidate for the first time, it waits for the whole lease duration, on a clock that may be slow. Its call may
/// hang once more, it may wait for its turn (four pauses), and a lost race costs another round. A leading-only workload
/// may have to wait for an unanswered write, and for the pause after two early ends.
pub fn recovers_within(timing: LeaseTiming) -> u64 {
    let calls = timing.call_timeout() * 3;
    let early = Duration::from_secs(4);
    let sum = timing.retry_period() * 2 + timing.lease_duration() + calls + timing.safety_margin() + early;
    u64::try_from(sum.as_millis()).unwrap_or(0) * 1_006 / 1_000
}

/// How much longer it may take if gates wait for caches. Each candidate may be away.
fn catches_up_within(world: &World<'_>) -> u64 {
    let Openings { asked, opened, .. } = world.net.get().seen.openings;
    let away = LONGEST_AWAY.min(AWAY << asked.saturating_sub(opened).min(16));
    if world.plan.knows() { CATCHES_UP + away } else { 0 }
}

/// How long after the order a process has stopped, at most: 5 s of grace, 10 s of drain, the time for an unanswered write,
/// and five calls.
fn stops_within(timing: LeaseTiming) -> u64 {
    let sum = Duration::from_secs(15) + timing.safety_margin() + timing.call_timeout() * 5;
    u64::try_from(sum.as_millis()).unwrap_or(0) * 1_013 / 1_000
}

fn play(world: &mut World<'_>) -> Outcome {
    let plan = world.plan;
    let over = plan.over().max(FIRST);
    play_faults(world, 0..over + 1);
    pass_until(world, over);
    let recovered = recover(world, over);
    let handed_over = hand_over(world);
    stop_all(world);
    let log = world.gateway.run(&world.net.clone(), async { world.server.write_log() });
    let mut outcome = Outcome { recovered, handed_over, length: world.now(), ..Outcome::default() };
    judge::judge(world, &log, &mut outcome);
    let mut net = world.net.get();
    outcome.messages = net.messages.iter().sum();
    outcome.knows = plan.knows();
    outcome.openings = net.seen.openings;
    outcome.faults.clone_from(&world.counts);
    outcome.kinds.clone_from(&world.kinds);
    let past = net.log.iter().filter(|line| line.ends_with(PAST)).count();
    outcome.faults.insert(PAST.to_owned(), past as u64);
    outcome.log.append(&mut net.log);
    outcome.log.sort_by_key(|line| line[..6].trim().parse().unwrap_or(0_u64));
    outcome.violations.append(&mut net.violations);
    outcome
}

/// Plays the faults that begin within this time, up to the end of the last one. Returns how many these are.
pub fn play_faults(world: &mut World<'_>, within: Range<u64>) -> u64 {
    let mut events: Vec<_> = (world.plan.faults.iter().enumerate())
        .filter(|(_, fault)| within.contains(&fault.at))
        .flat_map(|(id, fault)| [(fault.at, 1, id), (fault.at + fault.length.max(1), 0, id)])
        .collect();
    events.sort_unstable();
    let faults = events.len() as u64 / 2;
    for (at, begins, id) in events {
        pass_until(world, at);
        if begins == 1 { world.begin(id) } else { world.end(id) }
    }
    faults
}

pub fn pass_until(world: &mut World<'_>, end: u64) {
    while world.now() < end {
        world.step(end);
    }
}

/// Waits until each lease has a workload that writes.
fn recover(world: &mut World<'_>, over: u64) -> u64 {
    loop {
        let within = recovers_within(world.plan.longest()) + catches_up_within(world);
        let lost = world.net.get().seen.written.iter().position(|it| it.is_none_or(|at| at <= over));
        let Some(lease) = lost else { break };
        if world.now() > over + within {
            world.net.get().violate(format!(
                "liveness: no replica has written under lease {lease} {within} ms after the last fault"
            ));
            break;
        }
        world.step(u64::MAX);
    }
    let took = world.now() - over;
    pass_until(world, over + took + STEADY);
    took
}

/// Stops the holder of the first lease. Another machine follows it. Returns how long that took.
fn hand_over(world: &mut World<'_>) -> u64 {
    let (Some(holder), true) = (world.holder(0), world.hosts.len() > 1) else { return 0 };
    world.stop(holder);
    let (told, within) = (world.now(), stops_within(world.plan.longest()));
    while world.now() < told + within && world.hosts[holder].replica.is_some() {
        world.step(u64::MAX);
    }
    // One that has given up may stay away.
    let away = world.plan.faults.iter().any(|it| it.what == What::GiveUp);
    let released = |it: &Exit| it.machine == holder && it.ends[0] == LeaseEnd::Released;
    let released = !away && world.exits.last().is_some_and(released);
    let lease = u64::try_from(world.plan.longest().lease_duration().as_millis()).unwrap_or(u64::MAX);
    let plain = if released { lease + FOLLOWS } else { recovers_within(world.plan.longest()) };
    let stopped = world.now();
    while world.net.get().seen.written[0].is_none_or(|at| at <= stopped + 10) {
        let within = plain + catches_up_within(world);
        if world.now() > stopped + within {
            world
                .net
                .get()
                .violate(format!("liveness: no replica has written {within} ms after {holder} has stopped"));
            break;
        }
        world.step(u64::MAX);
    }
    if released { world.now() - stopped } else { 0 }
}

pub fn stop_all(world: &mut World<'_>) {
    (0..world.hosts.len()).for_each(|host| world.stop(host));
    let (told, within) = (world.now(), stops_within(world.plan.longest()));
    while world.hosts.iter().any(|it| it.replica.is_some()) {
        if world.now() > told + within {
            let left = (0..world.hosts.len()).filter(|it| world.hosts[*it].replica.is_some());
            let left: Vec<_> = left.map(identity).collect();
            world.net.get().violate(format!("stop: {left:?} have not stopped within {within} ms"));
            return;
        }
        world.step(u64::MAX);
    }
}
