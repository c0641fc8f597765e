//! Reads the tables of the document.

use super::heard::Event;

#[derive(Debug)]
pub struct Row {
    /// The text up to `…`, if there is one.
    message: String,
    goes_on: bool,
    pub levels: Vec<String>,
    module: String,
    fields: Vec<String>,
}

/// The rows of the tables that begin with a message.
pub fn rows(document: &str) -> Vec<Row> {
    let lines: Vec<Vec<&str>> = document.lines().map(cells).collect();
    let tables =
        lines.split(Vec::is_empty).filter(|table| table.first().is_some_and(|it| it[0] == "message"));
    let rows: Vec<Row> = tables.flat_map(|table| &table[2..]).map(|cells| Row::of(cells)).collect();
    assert!(rows.len() > 15, "the tables are there");
    rows
}

/// `None` if the line is not a row of a table.
fn cells(line: &str) -> Vec<&str> {
    let inner = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |"));
    inner.map(|line| line.split('|').map(str::trim).collect()).unwrap_or_default()
}

/// The words of a cell, without their backticks.
fn words(cell: &str) -> Vec<String> {
    let words = cell.split(", ").filter(|word| !word.is_empty());
    words.map(|word| word.trim_matches('`').to_owned()).collect()
}

impl Row {
    fn of(cells: &[&str]) -> Self {
        let [message, levels, module, fields, meaning] = cells else { panic!("five cells: {cells:?}") };
        assert!(!meaning.is_empty(), "{message}");
        let message = message.trim_matches('`');
        let (text, goes_on) = message.strip_suffix('…').map_or((message, false), |text| (text, true));
        let mut fields = words(fields);
        fields.sort();
        Self {
            message: text.to_owned(),
            goes_on,
            levels: words(levels),
            module: words(module).concat(),
            fields,
        }
    }

    pub fn describes(&self, event: &Event, level: &str) -> bool {
        let same = if self.goes_on {
            event.message.starts_with(&self.message) && event.message != self.message
        } else {
            event.message == self.message
        };
        let module = event.target.split("::").nth(1);
        same && event.level == level && module == Some(&self.module) && event.fields == self.fields
    }
}
