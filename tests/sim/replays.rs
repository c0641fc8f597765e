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
        layers: Layers { fence: false, early: false },
        machines: vec![
            Machine { work: WhileLeading, key: None, drift: 0, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 240, abrupt: false, knows: None },
            Machine { work: WhileLeading, key: None, drift: 0, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 156, abrupt: false, knows: None },
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
        layers: Layers { fence: false, early: false },
        machines: vec![
            Machine { work: WhileLeading, key: Some("low"), drift: 0, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 496, abrupt: false, knows: None },
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
        layers: Layers { fence: false, early: true },
        machines: vec![
            Machine { work: Gated, key: None, drift: -4654, wall: 0, pooled: false, timing: "20/15/2", request_deadline: false, pace: 187, abrupt: false, knows: None },
            Machine { work: Beside, key: None, drift: 0, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 156, abrupt: false, knows: None },
        ],
        faults: vec![
            Fault { at: 8424, length: 14000, target: All, what: Server(Hang, LeaseWrites) },
            Fault { at: 11858, length: 5217, target: Holder, what: Stop },
            Fault { at: 15455, length: 10571, target: Holder, what: Delay(Up, LeaseWrites, 2162, 3287) },
            Fault { at: 20617, length: 16905, target: Holder, what: Stop },
        ],
    });
}

/// A candidate that waits for a former holder stores the longer duration of that one in the lease, for other electors. The
/// judge once took it for the theft of a live lease that another candidate counted on the duration in the claim.
#[rustfmt::skip]
#[test]
fn seed_9343() {
    replay(&Plan {
        seed: 9343,
        leases: 1,
        layers: Layers { fence: false, early: false },
        machines: vec![
            Machine { work: Beside, key: Some("high"), drift: 0, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 443, abrupt: false, knows: None },
            Machine { work: WhileLeading, key: None, drift: 0, wall: 0, pooled: false, timing: "20/15/2", request_deadline: false, pace: 198, abrupt: false, knows: None },
        ],
        faults: vec![
            Fault { at: 20347, length: 1, target: Machine(0), what: GiveUp },
            Fault { at: 33964, length: 1, target: Holder, what: Steal },
            Fault { at: 36048, length: 1, target: Holder, what: Stop },
        ],
    });
}

/// A candidate stopped while an acquisition of it had no answer. It said that it had released the lease, although no read
/// that was sent late enough had shown that the acquisition did not land.
#[rustfmt::skip]
#[test]
fn seed_12559() {
    replay(&Plan {
        seed: 12559,
        leases: 2,
        layers: Layers { fence: false, early: false },
        machines: vec![
            Machine { work: WhileLeading, key: None, drift: 0, wall: 0, pooled: false, timing: "20/15/2", request_deadline: false, pace: 416, abrupt: false, knows: None },
            Machine { work: Gated, key: None, drift: 0, wall: 0, pooled: false, timing: "15/10/2", request_deadline: false, pace: 182, abrupt: false, knows: Some(2000) },
        ],
        faults: vec![
            Fault { at: 6162, length: 1, target: Holder, what: Steal },
            Fault { at: 15413, length: 10573, target: Holder, what: Kill },
            Fault { at: 24348, length: 9000, target: Machine(1), what: Delay(Down, LeaseWrites, 1724, 3224) },
            Fault { at: 25348, length: 7000, target: Holder, what: Stop },
            Fault { at: 31102, length: 9000, target: Machine(1), what: Delay(Down, LeaseReads, 900, 1300) },
            Fault { at: 31102, length: 4500, target: Machine(1), what: Delay(Down, Watches, 2000, 3000) },
            Fault { at: 31602, length: 2250, target: Machine(0), what: Stop },
            Fault { at: 33924, length: 7307, target: Holder, what: Server(Drop, Any) },
            Fault { at: 34255, length: 13252, target: Holder, what: Starve(335) },
            Fault { at: 37981, length: 4500, target: Machine(1), what: Stop },
        ],
    });
}
