//! Judges a run by the API server's log of writes, which trusts no client.

use crate::{
    gateway::identity,
    plan::{What, Work},
    replica::lease_name,
    run::Outcome,
    work,
    world::{Struck, World},
};
use kube_leader_gate::{
    election::LeaseEnd,
    testing::{Judge, LeaseTerm, LogTime, StrayKind, StrayWrite, SuccessionKind, TermEnding, WriteRecord},
};
use std::{collections::BTreeMap, time::Duration};

/// Clocks that drift make a lease shorter by this part, at most.
const SHORTER: f64 = 0.99;
/// A candidate that stays away gives back within this time what an earlier claim of it still brings.
const GIVES_BACK: u64 = 8_000;
/// A run has no more log messages of the crate than this for each machine, lease and fault, and for each 10 s.
const MESSAGES: u64 = 40;

pub fn judge(world: &World<'_>, log: &[WriteRecord], outcome: &mut Outcome) {
    for lease in 0..world.plan.leases {
        let (name, work) = (lease_name(lease), work::name(lease));
        let of_lease = |it: &&WriteRecord| {
            it.name.as_deref() == Some(if it.resource == "leases" { &name } else { &work })
        };
        let records: Vec<_> = log.iter().filter(of_lease).cloned().collect();
        one_lease(world, lease, &records, outcome);
    }
    outcome.log.extend(log.iter().map(|record| line(world, record)));
    let machines = u64::try_from(world.hosts.len() * world.plan.leases).unwrap_or(1);
    let faults = u64::try_from(world.plan.faults.len()).unwrap_or(0);
    let most = MESSAGES * machines * (1 + faults + world.now() / 10_000);
    let messages: u64 = world.net.get().messages.iter().sum();
    if messages > most {
        outcome.violations.insert(format!("messages: {messages} of them, more than {most}"));
    }
}

fn one_lease(world: &World<'_>, lease: usize, records: &[WriteRecord], outcome: &mut Outcome) {
    let users: Vec<_> = (0..world.hosts.len()).map(identity).collect();
    let verdict = Judge::new("default", lease_name(lease), users.clone()).verdict(records);
    outcome.writes += verdict.admitted.values().sum::<u64>();
    let mut count = |what: &str| *outcome.terms.entry(what.to_owned()).or_default() += 1;
    for term in &verdict.terms {
        count(match term.ended {
            Some((_, TermEnding::Released)) => "terms that were released",
            Some((_, TermEnding::Replaced)) => "terms that were replaced",
            Some((_, TermEnding::Deleted)) => "terms whose lease was deleted",
            None => "terms that were left to expire",
        });
    }
    for succession in verdict.successions().iter().filter(|it| it.from != it.to) {
        count(match succession.kind {
            SuccessionKind::Graceful => "handovers after a release",
            SuccessionKind::Takeover => "handovers after an expiry",
            SuccessionKind::AfterDeletion => "handovers after a deletion",
            SuccessionKind::Theft => "handovers from a live holder",
        });
    }
    let mut found = |what: String| {
        outcome.violations.insert(what);
    };
    // With priorities the lease is taken before the last write has ended; the gate then waits.
    let overtakes = world.plan.machines.iter().any(|it| it.key.is_some());
    let overlaps = |it: &&StrayWrite| matches!(&it.kind, StrayKind::Overlap(_));
    for stray in verdict.strays.iter().filter(|it| !overtakes && overlaps(it)) {
        found(format!(
            "overlap: {} wrote at {} after {:?}",
            stray.user,
            millis(world, stray.received),
            stray.kind
        ));
    }
    for pair in verdict.terms.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let key =
            |user: &str| users.iter().position(|it| it == user).and_then(|it| world.plan.machines[it].key);
        let early = after.acquired.at < before.heard.at + lasts(records, before).mul_f64(SHORTER);
        // Any key precedes none, and the outsider has none.
        let precedes = match key(&after.user) {
            Some("high") => key(&before.user) != Some("high"),
            Some(_) => key(&before.user).is_none(),
            None => false,
        };
        let by_a_user = ![before.holder.as_str(), "outsider"].contains(&after.user.as_str());
        let ended = before.ended.map(|it| it.1);
        if early
            && !precedes
            && !ended_before(world, records, before, millis(world, after.acquired))
            && by_a_user
            && ended == Some(TermEnding::Replaced)
        {
            found(format!(
                "theft: {} took the lease of {} at {}",
                after.user,
                before.holder,
                millis(world, after.acquired)
            ));
        }
    }
    in_the_order_of_effects(world, records, &mut found);
    let mut writes: Vec<_> =
        records.iter().filter(|it| it.took_effect() && it.resource == "leases").collect();
    writes.sort_by_key(|it| it.completed);
    after_exits(world, lease, &writes, &mut found);
    after_steps_down(world, lease, &writes, &mut found);
}

/// How long the holder of a term counts on its claim. While it waits for a former holder, it stores a longer duration in the
/// lease, for other electors alone: the candidates here read the duration and the list of former holders in its claim.
fn lasts(records: &[WriteRecord], term: &LeaseTerm) -> Duration {
    let acquires = |it: &&WriteRecord| it.user == term.holder && it.completed == Some(term.acquired);
    let lease = records.iter().find(acquires).and_then(|it| it.lease.as_ref());
    let claim = lease.and_then(|it| it.annotations.get("kube-leader-gate/claim"));
    let claimed = claim.and_then(|it| it.split(' ').nth(3)?.strip_suffix('s')?.parse().ok());
    claimed.map_or(term.duration, |claimed| term.duration.min(Duration::from_secs(claimed)))
}

/// Whether the holder's process had ended, and its writes had settled, before another candidate took the lease. Its claim
/// may have arrived after its end.
fn ended_before(world: &World<'_>, records: &[WriteRecord], term: &LeaseTerm, taken: u64) -> bool {
    let settles = u64::try_from(world.plan.longest().safety_margin().as_millis()).unwrap_or(0);
    let settled = |at: u64| (at + settles) * 100 <= taken * 101;
    let claim = records.iter().find(|it| it.user == term.user && it.completed == Some(term.acquired));
    let born: u64 = claim.and_then(|it| it.user_agent.parse().ok()).unwrap_or(u64::MAX);
    let mut ends = world.ended.iter().filter(|(host, _)| identity(*host) == term.holder);
    world.plan.layers.early && ends.any(|(_, at)| *at >= born && settled(*at))
}

/// Whether `writer` is a later process of the machine of `author`, and what that has sent has settled by then. Both are a name
/// and when the process was born. A machine runs one process at a time.
fn is_next(world: &World<'_>, author: (&str, &str), writer: (&str, &str), at: u64) -> bool {
    let born = |it: (&str, &str)| it.1.parse().unwrap_or(u64::MAX / 200);
    let host = (0..world.hosts.len()).find(|host| author.0 == writer.0 && identity(*host) == writer.0);
    host.is_some_and(|host| {
        let margin = world.plan.machines[host].timing().safety_margin().as_millis();
        let settled = born(writer) + u64::try_from(margin).unwrap_or(0);
        born(author) < born(writer) && settled * 100 <= at * 101
    })
}

/// No write takes effect after a write of another candidate's later term, and no process releases another's term.
fn in_the_order_of_effects(world: &World<'_>, records: &[WriteRecord], found: &mut impl FnMut(String)) {
    let mut effects: Vec<_> = records.iter().filter(|it| it.took_effect()).collect();
    effects.sort_by_key(|it| it.completed);
    let mut tokens: BTreeMap<&str, u64> = BTreeMap::new();
    let mut terms: BTreeMap<(&String, u64), u64> = BTreeMap::new();
    let works_while_leading = |user: &str| {
        let machine = (0..world.hosts.len()).find(|it| identity(*it) == user);
        machine.is_some_and(|it| world.plan.machines[it].work == Work::WhileLeading)
    };
    // Which process has claimed the lease: its name, and when it was born. A process before it had the same name.
    let (mut claimed, mut author) = (None, ("", ""));
    for record in effects {
        let at = record.completed.map_or(0, |it| millis(world, it));
        if let Some(lease) = &record.lease {
            let writer = (record.user.as_str(), record.user_agent.as_str());
            let may_release = author == writer || is_next(world, author, writer, at);
            if lease.holder_identity.is_empty() && !may_release {
                found(format!("release: {writer:?} released the term of {author:?} at {at}"));
            }
            let claim = Some((&lease.holder_identity, lease.lease_transitions, &lease.acquire_time));
            if claim != claimed {
                (claimed, author) = (claim, writer);
            }
        } else if record.resource != "leases"
            && let Some((token, born)) = admitted_by(record)
        {
            // The work of a term begins when no write of the work before it can take effect (rule S4).
            let whole = (&record.user, born);
            let newest = terms.entry(whole).or_default();
            if token < *newest && works_while_leading(&record.user) {
                found(format!(
                    "late: a write of {} took effect at {at}, after one of its later term",
                    record.user
                ));
            }
            *newest = token.max(*newest);
            let later = tokens.iter().find(|(user, other)| **user != record.user && **other > token);
            if let Some((user, _)) = later {
                found(format!(
                    "order: a write of {} took effect at {at}, after one of {user} in a later term",
                    record.user
                ));
            }
            let own = tokens.entry(&record.user).or_default();
            *own = token.max(*own);
        }
    }
}

/// A process that has stopped and says that the lease is released does not hold it, and never will. A lease that an
/// earlier process of this machine has left does not count.
fn after_exits(world: &World<'_>, lease: usize, writes: &[&WriteRecord], found: &mut impl FnMut(String)) {
    for exit in world.exits.iter().filter(|it| it.ends[lease] == LeaseEnd::Released) {
        let (name, born) = (identity(exit.machine), exit.born.to_string());
        let own = |it: &WriteRecord| it.user == name && it.user_agent == born;
        let names = |it: &WriteRecord| names(it, &name);
        // A deletion may be the last of all, or a process on this machine may have begun since.
        let last = writes.iter().rfind(|it| own(it)).is_some_and(|it| names(it));
        let held = writes.iter().rfind(|it| it.completed.is_some_and(|at| millis(world, at) < exit.until));
        if last && held.is_some_and(|it| names(it)) {
            found(format!(
                "kept: {name} stopped at {} and says that the lease is released, but holds it",
                exit.at
            ));
        }
    }
}

/// A candidate that has stepped down gives back a lease that it has acquired since. A fault of its machine gives it more
/// time.
fn after_steps_down(
    world: &World<'_>,
    lease: usize,
    writes: &[&WriteRecord],
    found: &mut impl FnMut(String),
) {
    // One that overtakes a holder waits for it. So does one that meets a deletion.
    let waits = world.plan.machines.iter().any(|it| it.key.is_some())
        || world.plan.faults.iter().any(|it| it.what == What::Delete);
    let net = world.net.get();
    for away in net.seen.away.iter().filter(|it| it.lease == lease && !waits) {
        let name = identity(away.machine);
        let hits = |it: &&Struck| it.machine == away.machine && it.at < away.until && it.what != What::GiveUp;
        let well_from = world.struck.iter().filter(hits).map(|it| it.until).max().unwrap_or(0);
        let at = |it: &WriteRecord| it.completed.map_or(0, |at| millis(world, at));
        for (place, write) in writes.iter().enumerate() {
            let held = place.checked_sub(1).is_some_and(|it| names(writes[it], &name));
            let own = names(write, &name) && write.user_agent == away.born.to_string();
            if held || !own || at(write) <= away.from || waits_for_another(write) {
                continue;
            }
            let ended = writes[place..].iter().find(|it| !names(it, &name)).map_or(u64::MAX, |it| at(it));
            let until = ended.min(away.until);
            if until.saturating_sub(at(write).max(well_from)) > GIVES_BACK {
                let from = at(write);
                found(format!("idle: {name} has stepped down, and holds the lease from {from} to {until}"));
            }
        }
    }
}

/// The token of the term that admitted a write, and the process.
fn admitted_by(it: &WriteRecord) -> Option<(u64, u64)> {
    let (token, born) = it.user_agent.split_once(" of ")?;
    Some((token.parse().ok()?, born.parse().ok()?))
}

/// Whether the holder says that it waits for a former one.
fn waits_for_another(it: &WriteRecord) -> bool {
    let list = it.lease.as_ref().and_then(|it| it.annotations.get("kube-leader-gate/waits-for"));
    list.is_some_and(|it| it != "{}")
}

fn names(it: &WriteRecord, name: &str) -> bool {
    it.lease.as_ref().is_some_and(|it| it.holder_identity == name)
}

fn millis(world: &World<'_>, at: LogTime) -> u64 {
    u64::try_from(at.at.duration_since(world.epoch).as_millis()).unwrap_or(0)
}

fn line(world: &World<'_>, it: &WriteRecord) -> String {
    let (from, to) = (millis(world, it.received), it.completed.map(|at| millis(world, at)));
    let name = it.name.as_deref().unwrap_or("-");
    let lease = it.lease.as_ref().map_or(String::new(), |lease| {
        format!(" -> {:?} {:?}", lease.holder_identity, lease.lease_transitions)
    });
    let took = to.map_or("no effect".to_owned(), |to| format!("{} after {} ms", it.status, to - from));
    format!("{from:>6} {} ({}) sends: {} {name}: {took}{lease}", it.user, it.user_agent, it.verb)
}
