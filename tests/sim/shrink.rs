//! Makes a failing plan smaller: fewer faults, fewer machines, shorter faults, plainer machines.

use crate::plan::{Machine, Plan, TIMINGS, Target};

/// How many smaller plans are tried.
const TRIES: u32 = 400;

/// The smallest plan that was found for which `fails` is true. It is true for `plan`.
pub fn shrink(plan: &Plan, fails: impl Fn(&Plan) -> bool) -> Plan {
    let (mut best, mut tries) = (plan.clone(), 0);
    'smaller: loop {
        for smaller in smaller(&best) {
            tries += 1;
            if tries > TRIES {
                return best;
            }
            if fails(&smaller) {
                best = smaller;
                continue 'smaller;
            }
        }
        return best;
    }
}

fn smaller(plan: &Plan) -> Vec<Plan> {
    let mut plans = vec![];
    let with = |change: &dyn Fn(&mut Plan)| {
        let mut changed = plan.clone();
        change(&mut changed);
        (changed != *plan).then_some(changed)
    };
    let half = plan.faults.len() / 2;
    plans.extend(with(&|it| drop(it.faults.drain(half..))));
    plans.extend(with(&|it| drop(it.faults.drain(..half))));
    for place in 0..plan.faults.len() {
        plans.extend(with(&|it| {
            it.faults.remove(place);
        }));
    }
    for gone in (0..plan.machines.len()).filter(|_| plan.machines.len() > 1) {
        plans.extend(with(&|it| remove_machine(it, gone)));
    }
    plans.extend(with(&|it| it.leases = 1));
    plans.extend(with(&|it| it.layers.fence = false));
    plans.extend(with(&|it| it.layers.early = false));
    for place in 0..plan.machines.len() {
        let plainer: [fn(&mut Machine); 9] = [
            |it| it.key = None,
            |it| it.drift = 0,
            |it| it.wall = 0,
            |it| it.pooled = false,
            |it| it.timing = TIMINGS[0],
            |it| it.request_deadline = false,
            |it| it.abrupt = false,
            |it| it.knows = None,
            |it| it.knows = it.knows.map(|_| 0),
        ];
        for change in plainer {
            plans.extend(with(&|it| change(&mut it.machines[place])));
        }
    }
    for place in 0..plan.faults.len() {
        plans.extend(with(&|it| it.faults[place].length = (it.faults[place].length / 2).max(1)));
    }
    plans
}

fn remove_machine(plan: &mut Plan, gone: usize) {
    plan.machines.remove(gone);
    plan.faults.retain(|it| it.target != Target::Machine(gone));
    for fault in &mut plan.faults {
        if let Target::Machine(machine) = &mut fault.target
            && *machine > gone
        {
            *machine -= 1;
        }
    }
}

#[test]
fn plan_shrinks_to_what_fails() {
    use crate::plan::{Fault, What};
    let mut plan = crate::author::plan(4);
    plan.faults.push(Fault { at: 40_000, length: 900, target: Target::Machine(0), what: What::Freeze });
    let fails = |plan: &Plan| plan.faults.iter().any(|it| it.what == What::Freeze && it.length > 100);
    let small = shrink(&plan, fails);
    assert_eq!((small.machines.len(), small.faults.len(), small.leases), (1, 1, 1), "{small}");
    assert!(small.faults[0].length <= 225, "{small}");
}
