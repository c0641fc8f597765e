//! The tables and plots of a play.

use crate::{
    peer::Peer,
    plot::{Row, plot},
    record::{Conditions, Round, Scenario},
    stats::{Sample, time},
};
use std::fmt::Write;

/// A measurement: its name in the results, and in words.
type Measurement = (&'static str, &'static str);

struct Part {
    scenario: Scenario,
    heading: &'static str,
    file: &'static str,
    label: &'static str,
    measurements: &'static [Measurement],
}

const PARTS: [Part; 3] = [
    Part {
        scenario: Scenario::Handover,
        heading: "Graceful handover: from SIGTERM to the leader",
        file: "handover.svg",
        label: "handover-plot",
        measurements: &[("lease", "next leader on the lease"), ("write", "its first write")],
    },
    Part {
        scenario: Scenario::Crash,
        heading: "Crash takeover: from SIGKILL of the leader, or from the lease's end",
        file: "crash.svg",
        label: "crash-plot",
        measurements: &[
            ("past-end", "lease's end to next leader"),
            ("lease", "SIGKILL to next leader"),
            ("write", "SIGKILL to its first write"),
        ],
    },
    Part {
        scenario: Scenario::Rollout,
        heading: "Rolling restart of three replicas",
        file: "rollout.svg",
        label: "rollout-plot",
        measurements: &[
            ("leaderless", "time without a leader, in all"),
            ("gap", "longest time without a write"),
        ],
    },
];

pub(crate) fn plots(rounds: &[Round]) -> impl Iterator<Item = (&'static str, String)> {
    PARTS.iter().map(|part| {
        let row = |peer: Peer, (key, name): Measurement| Row {
            group: peer.to_string(),
            name: name.split(',').next().unwrap_or(name).replace(" of the leader", ""),
            sample: sample(rounds, peer, part.scenario, key),
        };
        let rows: Vec<Row> =
            Peer::ALL.iter().flat_map(|peer| part.measurements.iter().map(|it| row(*peer, *it))).collect();
        (part.file, plot(part.heading, &rows))
    })
}

pub(crate) fn tables(conditions: &Conditions, rounds: &[Round]) -> String {
    let mut text = format!("`{}`, {}\n\n", conditions.command, conditions.machine);
    for part in &PARTS {
        let _ = writeln!(text, "**{}** ([every round][{}])\n", part.heading, part.label);
        let mut rule = String::from("| --- | --- |");
        let _ = write!(text, "| | rounds |");
        for (_, name) in part.measurements {
            let _ = write!(text, " {name}: median | 90% within | most |");
            rule.push_str(" --- | --- | --- |");
        }
        let _ = writeln!(text, "\n{rule}");
        for peer in Peer::ALL {
            let _ = write!(text, "| {} |", name(peer));
            let samples = part.measurements.iter().map(|(key, _)| sample(rounds, peer, part.scenario, key));
            for (place, sample) in samples.enumerate() {
                if place == 0 {
                    let _ = write!(text, " {} |", sample.len());
                }
                for value in [sample.median(), sample.percentile(90), sample.most()] {
                    let _ = write!(text, " {} |", value.map_or("-".into(), time));
                }
            }
            text.push('\n');
        }
        text.push('\n');
    }
    steady(&mut text, rounds);
    failures(&mut text, rounds);
    text
}

fn steady(text: &mut String, rounds: &[Round]) {
    text.push_str("**Requests for the lease a minute, in steady state**\n\n| | leader | each follower |\n| --- | --- | --- |\n");
    for peer in Peer::ALL {
        let round = rounds.iter().find(|it| it.peer == peer && it.scenario == Scenario::Steady);
        let cell = |role: &str| {
            let values = &round.filter(|it| it.failure.is_none())?.values;
            let verbs = values.iter().filter_map(|(name, value)| {
                let verb = name.strip_prefix(role)?.strip_prefix(' ')?;
                Some(format!("{value:.1} {verb}"))
            });
            let verbs: Vec<String> = verbs.collect();
            Some(if verbs.is_empty() { "0".to_owned() } else { verbs.join(", ") })
        };
        let [leader, follower] = ["leader", "follower"].map(|it| cell(it).unwrap_or("-".into()));
        let _ = writeln!(text, "| {} | {leader} | {follower} |", name(peer));
    }
    text.push('\n');
}

fn failures(text: &mut String, rounds: &[Round]) {
    for round in rounds {
        if let Some(failure) = &round.failure {
            let what = match round.scenario {
                Scenario::Handover => "handover",
                Scenario::Crash => "crash",
                Scenario::Rollout => "rolling restart",
                Scenario::Steady => "steady state",
            };
            let failure: String =
                failure.split("; its last words").next().unwrap_or_default().replace('|', "/");
            let _ = writeln!(text, "- Failed: {what} {} of {}: {failure}.", round.number, round.peer);
        }
    }
    if text.ends_with(".\n") {
        text.push('\n');
    }
}

fn name(peer: Peer) -> String {
    if peer == Peer::KubeLeaderGate { format!("**{peer}**") } else { peer.to_string() }
}

fn sample(rounds: &[Round], peer: Peer, scenario: Scenario, key: &str) -> Sample {
    let own = rounds.iter().filter(|it| it.peer == peer && it.scenario == scenario);
    own.filter_map(|it| it.values.get(key).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::tables;
    use crate::{
        peer::Peer,
        record::{Conditions, Round, Scenario},
    };

    #[test]
    fn tables_have_failures_and_medians() {
        let conditions = Conditions { machine: "A machine.".into(), command: "make peers".into() };
        let round = |number, value: Option<f64>| Round {
            peer: Peer::Kubert,
            scenario: Scenario::Handover,
            number,
            values: value
                .map(|it| [("lease".to_owned(), it), ("write".to_owned(), it + 1.0)].into())
                .unwrap_or_default(),
            failure: value.is_none().then(|| "no result | at all; its last words: none".into()),
        };
        let text = tables(&conditions, &[round(1, Some(5.0)), round(2, Some(7.0)), round(3, None)]);
        assert!(text.contains("| kubert | 2 | 6.0 ms | 7.0 ms | 7.0 ms | 7.0 ms |"), "{text}");
        assert!(text.contains("- Failed: handover 3 of kubert: no result / at all.\n"), "{text}");
        assert!(text.contains("| **kube-leader-gate** | 0 | - |"), "{text}");
    }
}
