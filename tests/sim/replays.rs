//! Plans that have failed once. `make -C tests sim` prints such tests; put them here as they are.

#[allow(unused_imports, reason = "a plan may name any of them")]
use crate::{
    plan::{
        Break::*, Class::*, Fault, Layers, Machine, Plan, Target::*, Trouble::*, Way::*, What::*, Work::*,
    },
    run::run,
};

fn replay(plan: &Plan) {
    assert!(
        include_str!("replays.rs").contains(&plan.to_string()),
        "the printed test is the pasted one:\n{plan}"
    );
    let outcome = run(plan, true);
    if !outcome.violations.is_empty() {
        outcome.log.iter().for_each(|line| println!("{line}"));
        panic!("{:#?}", outcome.violations);
    }
}

/// A process that never led leaves the lease that an earlier process of its machine holds. The judge once took that lease
/// for its own.
#[rustfmt::skip]
#[test]
fn seed_69() {
    replay(&Plan {
        seed: 69,
        leases: 1,
        layers: Layers { fence: false, early: false, coordinated: false },
        machines: vec![
            Machine { work: WhileLeading, key: None, drift: 0, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 240, abrupt: false },
            Machine { work: WhileLeading, key: None, drift: 0, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 156, abrupt: false },
        ],
        faults: vec![
            Fault { at: 5552, length: 15625, target: Holder, what: Freeze },
            Fault { at: 9067, length: 1, target: Holder, what: Stop },
            Fault { at: 9909, length: 4, target: Machine(1), what: Stop },
            Fault { at: 19138, length: 3500, target: Holder, what: Stop },
        ],
    });
}

/// A candidate with any key may take the lease from a live outsider, who has none. The judge once took that for a theft.
#[rustfmt::skip]
#[test]
fn seed_3169() {
    replay(&Plan {
        seed: 3169,
        leases: 1,
        layers: Layers { fence: false, early: false, coordinated: false },
        machines: vec![
            Machine { work: WhileLeading, key: Some("low"), drift: 0, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 496, abrupt: false },
        ],
        faults: vec![
            Fault { at: 14168, length: 9223, target: All, what: Hold(Up, LeaseReads) },
            Fault { at: 14753, length: 1, target: All, what: GiveUp },
            Fault { at: 21484, length: 1, target: Holder, what: Steal },
        ],
    });
}

/// A claim arrives after its process has ended. The judge once took the early takeover of that lease for a theft.
#[rustfmt::skip]
#[test]
fn seed_3417() {
    replay(&Plan {
        seed: 3417,
        leases: 1,
        layers: Layers { fence: false, early: true, coordinated: false },
        machines: vec![
            Machine { work: Gated, key: None, drift: -4654, wall: 0, pooled: false, timing: "20/15/2", request_deadline: false, pace: 187, abrupt: false },
            Machine { work: Beside, key: None, drift: 0, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 156, abrupt: false },
        ],
        faults: vec![
            Fault { at: 8424, length: 14000, target: All, what: Server(Hang, LeaseWrites) },
            Fault { at: 11858, length: 5217, target: Holder, what: Stop },
            Fault { at: 15455, length: 10571, target: Holder, what: Delay(Up, LeaseWrites, 2162, 3287) },
            Fault { at: 20617, length: 16905, target: Holder, what: Stop },
        ],
    });
}

/// The coordinator names a process that stops before it accepts. The judge once took that for a lease that it holds.
#[rustfmt::skip]
#[test]
fn seed_572() {
    replay(&Plan {
        seed: 572,
        leases: 1,
        layers: Layers { fence: false, early: false, coordinated: true },
        machines: vec![
            Machine { work: Gated, key: None, drift: 0, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 241, abrupt: false },
        ],
        faults: vec![
            Fault { at: 9136, length: 14000, target: Holder, what: Server(Hang, LeaseWrites) },
            Fault { at: 22973, length: 70, target: Machine(0), what: Stop },
        ],
    });
}

/// A lease is deleted, and the coordinator makes it anew for another candidate, which waits. The judge once took that for
/// the end of the former term.
#[rustfmt::skip]
#[test]
fn seed_857() {
    replay(&Plan {
        seed: 857,
        leases: 1,
        layers: Layers { fence: false, early: true, coordinated: true },
        machines: vec![
            Machine { work: Gated, key: None, drift: 0, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 316, abrupt: false },
            Machine { work: Beside, key: None, drift: -801, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 222, abrupt: false },
            Machine { work: Beside, key: None, drift: 3426, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 339, abrupt: false },
        ],
        faults: vec![
            Fault { at: 5132, length: 2514, target: Machine(0), what: Delay(Down, LeaseWrites, 1000, 1500) },
            Fault { at: 7646, length: 14000, target: Machine(0), what: Delay(Up, Work, 2325, 4590) },
            Fault { at: 11501, length: 460, target: Holder, what: Delay(Down, Watches, 2549, 3110) },
            Fault { at: 15911, length: 9817, target: All, what: Delay(Up, Any, 110, 146) },
            Fault { at: 35490, length: 1, target: All, what: Delete },
        ],
    });
}

/// All replicas begin anew while the coordinator has named another one. The next leader once waited a lease duration for the
/// holder before, which was not shown: the leader between them had waited for it already.
#[rustfmt::skip]
#[test]
fn seed_233() {
    replay(&Plan {
        seed: 233,
        leases: 1,
        layers: Layers { fence: false, early: false, coordinated: true },
        machines: vec![
            Machine { work: Beside, key: None, drift: 0, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 437, abrupt: false },
            Machine { work: Beside, key: None, drift: 0, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 264, abrupt: false },
            Machine { work: Gated, key: None, drift: 0, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 231, abrupt: false },
            Machine { work: Gated, key: None, drift: 0, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 286, abrupt: false },
        ],
        faults: vec![
            Fault { at: 14215, length: 16084, target: All, what: PowerLoss },
            Fault { at: 37154, length: 8991, target: Holder, what: Starve(2546) },
        ],
    });
}
