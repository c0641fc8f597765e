//! Hours of faults for processes that live through all of them: `make -C tests soak HOURS=2`. What they use stays flat.

use crate::{
    author, judge,
    messages::Messages,
    plan::{Fault, Layers, Machine, Plan, TIMINGS, Target, What, Work},
    run::{Outcome, pass_until, play_faults, stop_all},
    seeds,
    world::World,
};
use test_support::usage;

/// What `make test` plays.
const MINUTES: u64 = 20;
/// A scene of faults, and the time in which all is well again: 36 s until the last fault begins, 20 s for the longest
/// one, and what `run::recovers_within` says.
const SCENE: u64 = 100_000;
const MACHINES: usize = 3;

/// What the processes use at a quiet instant.
#[derive(Debug)]
struct Sample {
    /// Tasks of the process that has the most.
    tasks: usize,
    /// Descriptors of all processes. The simulated network has no others.
    connections: usize,
    /// Messages of the crate, at the level `info` and above, since the last sample.
    messages: u64,
    faults: u64,
    /// Resident KiB of this test: the processes, the API server, and the network.
    memory: u64,
}

/// `SOAK_MINUTES` and `SIM_FROM` choose another length and other seeds.
#[test]
fn hours_of_faults_leave_no_growth() {
    let asked = seeds::number("SOAK_MINUTES");
    let minutes = asked.unwrap_or(MINUTES);
    let scenes = (minutes * 60_000).div_ceil(SCENE);
    let plan = plan(seeds::number("SIM_FROM").unwrap_or(0), scenes);
    let mut world = World::new(&plan);
    let messages = Messages { net: world.net.clone(), keep: false };
    let samples = tracing::subscriber::with_default(messages, || {
        let samples = (1..=scenes).map(|scene| play(&mut world, scene * SCENE)).collect::<Vec<_>>();
        stop_all(&mut world);
        samples
    });
    print(&samples);
    // Other tests run in the same process, unless a user asks for this one.
    assert_eq!(grown(&samples, asked.is_some()), Vec::<String>::new());
    let faults: u64 = samples.iter().map(|it| it.faults).sum();
    assert!(faults > scenes * 2, "{faults} faults are too few");
    let violations = world.net.get().violations.clone();
    assert!(violations.is_empty(), "{violations:?}");
}

/// The scenes of many seeds, one after the other, without those faults that end a process.
fn plan(first: u64, scenes: u64) -> Plan {
    let machine = |work| Machine {
        work,
        key: None,
        drift: 0,
        wall: 0,
        pooled: false,
        timing: TIMINGS[0],
        request_deadline: work == Work::Gated,
        pace: 300,
        abrupt: work == Work::Beside,
        knows: None,
    };
    let mut faults = Vec::new();
    for scene in 0..scenes {
        let of_scene = author::plan(first + scene).faults.into_iter();
        let endures = |it: &Fault| !matches!(it.what, What::Kill | What::PowerLoss | What::Stop);
        faults.extend(of_scene.filter(endures).map(|it| Fault {
            at: scene * SCENE + it.at,
            target: match it.target {
                Target::Machine(machine) => Target::Machine(machine % MACHINES),
                other => other,
            },
            ..it
        }));
    }
    let machines = [Work::Gated, Work::WhileLeading, Work::Beside].map(machine).to_vec();
    Plan { seed: first, leases: 1, layers: Layers::NONE, machines, faults }
}

/// Plays the faults that begin before `end`, judges what was written, and looks at what is used.
fn play(world: &mut World<'_>, end: u64) -> Sample {
    let from = world.now();
    let faults = play_faults(world, from..end);
    let over = world.now();
    pass_until(world, end);
    let net = world.net.clone();
    let log = world.gateway.run(&net, async { world.server.take_write_log() });
    let mut outcome = Outcome::default();
    judge::judge(world, &log, &mut outcome);
    let mut net = net.get();
    if net.seen.written[0].is_none_or(|at| at <= over) {
        net.violate(format!("liveness: no replica has written in the {} ms before {end}", end - over));
    }
    net.violations.append(&mut outcome.violations);
    net.log.clear();
    let messages = net.messages.iter_mut().map(std::mem::take).sum();
    Sample {
        tasks: world
            .hosts
            .iter()
            .filter_map(|it| Some(it.replica.as_ref()?.process.tasks()))
            .max()
            .unwrap_or(0),
        connections: net.open(),
        messages,
        faults,
        memory: usage::memory("self").expect("the kernel tells"),
    }
}

/// What has grown from the second quarter of the samples to the last one.
fn grown(samples: &[Sample], alone: bool) -> Vec<String> {
    let (early, late) = usage::quarters(samples);
    let most = |part: &[Sample], of: fn(&Sample) -> u64| part.iter().map(of).max().unwrap_or_default();
    let judge = |what: &str, of: fn(&Sample) -> u64, spare: u64| {
        usage::growth(what, most(early, of), most(late, of), spare)
    };
    let messages = |it: &Sample| it.messages / it.faults.max(1);
    let spare = most(early, |it| it.memory) / 10 + 2_048;
    let judged = [
        // A write more or less under way.
        judge("tasks", |it| it.tasks as u64, 2),
        judge("connections", |it| it.connections as u64, 6),
        judge("messages for each fault", messages, most(early, messages) / 2 + 2),
        judge("KiB of memory", |it| it.memory, spare).filter(|_| alone),
    ];
    judged.into_iter().flatten().collect()
}

/// A row for each tenth of the time.
fn print(samples: &[Sample]) {
    println!(
        "| simulated minutes | faults | tasks of a process | connections | messages for each fault | memory (MiB) |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    let (each, mut scenes, mut faults) = (samples.len().div_ceil(10).max(1), 0, 0);
    for part in samples.chunks(each) {
        let most = |of: fn(&Sample) -> u64| part.iter().map(of).max().unwrap_or_default();
        let (messages, more) = part.iter().fold((0, 0), |sum, it| (sum.0 + it.messages, sum.1 + it.faults));
        (scenes, faults) = (scenes + part.len() as u64, faults + more);
        println!(
            "| {} | {faults} | {} | {} | {} | {} |",
            scenes * SCENE / 60_000,
            most(|it| it.tasks as u64),
            most(|it| it.connections as u64),
            messages / more.max(1),
            most(|it| it.memory) / 1024,
        );
    }
}
