//! The tables of the costs.

use crate::{
    record::{Conditions, Cost, Table},
    stats::time,
};
use std::fmt::Write;

/// A row: the texts of its cells.
type Cells = fn(&Cost, &[Cost]) -> Vec<String>;

/// What is written of one table: how it was measured, and the table. None if nothing of it was measured.
pub(crate) fn part(conditions: &Conditions, costs: &[Cost], table: Table) -> Option<String> {
    let (heading, cells): (_, Cells) = match table {
        Table::Build => (
            "| a small program | crates that it needs | clean release build | stripped binary |\n| --- | --- | --- | --- |\n",
            build,
        ),
        Table::Idle => (
            "| idle candidates: the leader, each follower | processor time a minute | resident memory |\n| --- | --- | --- |\n",
            idle,
        ),
        Table::Many => (
            "| elections in one process, all leading | resident memory | for each election after the first one |\n\
             | --- | --- | --- |\n",
            many,
        ),
    };
    let mut rows = costs.iter().filter(|it| it.table == table).peekable();
    rows.peek()?;
    let mut text = format!("`{}`, {}\n\n{heading}", conditions.command, conditions.machine);
    for row in rows {
        let cells = match &row.failure {
            Some(failure) => vec![format!("failed: {}", failure.replace('|', "/"))],
            None => cells(row, costs),
        };
        let _ = writeln!(text, "| {} | {} |", row.what, cells.join(" | "));
    }
    text.push('\n');
    Some(text)
}

fn value(row: &Cost, name: &str) -> f64 {
    row.values.get(name).copied().unwrap_or(f64::NAN)
}

fn megabytes(kilobytes: f64) -> String {
    format!("{:.1} MB", kilobytes / 1000.0)
}

/// With what it adds to the program without an elector, on the same kube.
fn build(row: &Cost, costs: &[Cost]) -> Vec<String> {
    let bare = costs.iter().find(|it| {
        it.table == Table::Build
            && it.values.get("bare") == Some(&1.0)
            && value(it, "kube").total_cmp(&value(row, "kube")).is_eq()
    });
    let added = |name: &str, words: fn(f64) -> String| {
        let own = value(row, name);
        match bare.map(|it| own - value(it, name)).filter(|_| value(row, "bare") < 0.5) {
            Some(more) => {
                format!("{} ({}{})", words(own), if more < 0.0 { "-" } else { "+" }, words(more.abs()))
            }
            None => words(own),
        }
    };
    vec![
        added("crates", |it| format!("{it:.0}")),
        added("seconds", |it| format!("{it:.0} s")),
        added("kilobytes", megabytes),
    ]
}

fn idle(row: &Cost, _: &[Cost]) -> Vec<String> {
    let times = ["leader cpu", "follower cpu"].map(|it| time(value(row, it)));
    let memory = ["leader kilobytes", "follower kilobytes"].map(|it| megabytes(value(row, it)));
    vec![times.join(", "), memory.join(", ")]
}

fn many(row: &Cost, costs: &[Cost]) -> Vec<String> {
    let one = costs.iter().find(|it| it.table == Table::Many && value(it, "elections") < 1.5);
    let (own, elections) = (value(row, "kilobytes"), value(row, "elections"));
    let each = one.filter(|_| elections > 1.5).map(|one| (own - value(one, "kilobytes")) / (elections - 1.0));
    vec![megabytes(own), each.map_or("-".to_owned(), |it| format!("{it:.1} kB"))]
}

#[cfg(test)]
mod tests {
    use super::part;
    use crate::record::{Conditions, Cost, Table};

    fn cost(table: Table, what: &str, values: &[(&str, f64)]) -> Cost {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Cost { table, what: what.into(), values, failure: None }
    }

    #[test]
    fn builds_say_what_they_add() {
        let build = |what, bare, crates| {
            let values =
                [("kube", 5.0), ("bare", bare), ("crates", crates), ("seconds", 60.0), ("kilobytes", 4000.0)];
            cost(Table::Build, what, &values)
        };
        let many = |elections, kilobytes| {
            cost(Table::Many, "many", &[("elections", elections), ("kilobytes", kilobytes)])
        };
        let costs =
            [build("bare", 1.0, 150.0), build("gate", 0.0, 155.0), many(1.0, 9000.0), many(11.0, 9500.0)];
        let conditions = Conditions { machine: "A machine.".into(), command: "make -C benches cost".into() };
        let text = |table| part(&conditions, &costs, table).expect("rows");
        let builds = text(Table::Build);
        assert!(builds.contains("| bare | 150 | 60 s | 4.0 MB |"), "{builds}");
        assert!(builds.contains("| gate | 155 (+5) | 60 s (+0 s) | 4.0 MB (+0.0 MB) |"), "{builds}");
        let elections = text(Table::Many);
        assert!(elections.contains("| many | 9.0 MB | - |\n| many | 9.5 MB | 50.0 kB |"), "{elections}");
        assert_eq!(part(&conditions, &costs, Table::Idle), None, "its earlier text stays");
    }
}
