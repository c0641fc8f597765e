//! The table and the plots of a play.

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
    measurements: &'static [Measurement],
}

const PARTS: [Part; 3] = [
    Part {
        scenario: Scenario::Handover,
        heading: "Graceful handover: from SIGTERM to the leader",
        file: "handover.svg",
        measurements: &[("lease", "next leader on the lease"), ("write", "its first write")],
    },
    Part {
        scenario: Scenario::Crash,
        heading: "Crash takeover: from SIGKILL of the leader, or from the lease's end",
        file: "crash.svg",
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
        measurements: &[
            ("leaderless", "time without a leader, in all"),
            ("gap", "longest time without a write"),
        ],
    },
];

/// The columns of the table, with their headings. The plots have the other measurements.
const COLUMNS: [(Scenario, &str, &str); 5] = [
    (Scenario::Handover, "lease", "handover: from SIGTERM to the next leader"),
    (Scenario::Handover, "write", "handover: from SIGTERM to the next leader's first write"),
    (Scenario::Crash, "past-end", "crash: from the lease's end to the next leader"),
    (Scenario::Rollout, "leaderless", "rolling restart: time without a leader"),
    (Scenario::Rollout, "gap", "rolling restart: longest time without a write"),
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

pub(crate) fn table(conditions: &Conditions, rounds: &[Round]) -> String {
    let headings = COLUMNS.map(|(_, _, heading)| heading).join(" | ");
    let mut text = format!(
        "`{}`, {}\n\n| median, most | {headings} | lease requests a minute: leader | lease requests a minute: each follower |\n|{}\n",
        conditions.command,
        conditions.machine,
        " --- |".repeat(COLUMNS.len() + 3),
    );
    for peer in Peer::ALL {
        let times = COLUMNS.map(|(scenario, key, _)| {
            let sample = sample(rounds, peer, scenario, key);
            match (sample.median(), sample.most()) {
                (Some(median), Some(most)) => format!("{}, {}", time(median), time(most)),
                _ => "-".to_owned(),
            }
        });
        let requests = ["leader", "follower"].map(|role| requests(rounds, peer, role));
        let _ = writeln!(text, "| {} | {} | {} |", name(peer), times.join(" | "), requests.join(" | "));
    }
    text.push('\n');
    failures(&mut text, rounds);
    text
}

/// What this role asks of the API server in steady state.
fn requests(rounds: &[Round], peer: Peer, role: &str) -> String {
    let round = rounds.iter().find(|it| it.peer == peer && it.scenario == Scenario::Steady);
    let Some(round) = round.filter(|it| it.failure.is_none()) else { return "-".to_owned() };
    let verbs = round.values.iter().filter_map(|(name, value)| {
        let verb = name.strip_prefix(role)?.strip_prefix(' ')?;
        Some(format!("{value:.0} {verb}"))
    });
    let verbs: Vec<String> = verbs.collect();
    if verbs.is_empty() { "0".to_owned() } else { verbs.join(", ") }
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
    use super::table;
    use crate::{
        peer::Peer,
        record::{Conditions, Round, Scenario},
    };

    #[test]
    fn table_has_failures_and_medians() {
        let conditions = Conditions { machine: "A machine.".into(), command: "make -C benches peers".into() };
        let round = |number, value: Option<f64>| Round {
            peer: Peer::Kubert,
            scenario: Scenario::Handover,
            number,
            values: value
                .map(|it| [("lease".to_owned(), it), ("write".to_owned(), it + 1.0)].into())
                .unwrap_or_default(),
            failure: value.is_none().then(|| "no result | at all; its last words: none".into()),
        };
        let text = table(&conditions, &[round(1, Some(5.0)), round(2, Some(7.0)), round(3, None)]);
        assert!(text.contains("| kubert | 6.0 ms, 7.0 ms | 7.0 ms, 8.0 ms | - |"), "{text}");
        assert!(text.contains("- Failed: handover 3 of kubert: no result / at all.\n"), "{text}");
        assert!(text.contains("| **kube-leader-gate** | - |"), "{text}");
    }
}
