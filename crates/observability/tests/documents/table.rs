//! The metrics that METRICS.md lists. A test of the crate compares that table with what an exporter shows.

use std::collections::{BTreeMap, BTreeSet};

pub const METRICS: &str = include_str!("../../../../docs/METRICS.md");

/// Labels that each series of the crate has, and those that a scrape adds to every series.
const OF_ALL: [&str; 6] = ["name", "lease_namespace", "instance", "job", "namespace", "pod"];

#[derive(Default)]
pub struct Table {
    /// The labels of each series.
    series: BTreeMap<String, BTreeSet<String>>,
    /// All words in code of the rows that have a label. Its values are among them.
    words: BTreeMap<String, BTreeSet<String>>,
}

impl Table {
    pub fn read() -> Self {
        let mut table = Self::default();
        METRICS.lines().filter(|line| line.starts_with("| `leader_")).for_each(|row| table.add(row));
        assert!(table.series.len() > 13, "the table has {} series", table.series.len());
        table
    }

    fn add(&mut self, row: &str) {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, kind, labels, says] = cells[..] else { panic!("not four cells: {row}") };
        for label in code(labels) {
            self.words.entry(label.to_owned()).or_default().extend(code(says).map(str::to_owned));
        }
        let endings: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        for ending in endings {
            let le = (*ending == "_bucket").then_some("le");
            let labels = code(labels).chain(OF_ALL).chain(le).map(str::to_owned).collect();
            let name = code(name).next().expect("a name").to_owned() + ending;
            self.series.insert(name, labels);
        }
    }

    /// The labels of this series.
    pub fn labels(&self, series: &str) -> Option<&BTreeSet<String>> {
        self.series.get(series)
    }

    pub fn has_label(&self, label: &str) -> bool {
        self.series.values().any(|labels| labels.contains(label))
    }

    /// Whether a label may have this value. The crate does not choose the names of leases and targets.
    pub fn has_value(&self, label: &str, value: &str) -> bool {
        OF_ALL.contains(&label) || self.words.get(label).is_some_and(|words| words.contains(value))
    }
}

/// What stands between backticks.
fn code(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}
