//! Reads the list of log lines, and what the page for users explains.

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

/// The rows below the head.
pub fn rows(list: &str) -> Vec<Row> {
    let mut lines = list.lines();
    assert_eq!(lines.next(), Some("message\tlevel\tmodule\tfields"));
    let rows: Vec<Row> = lines.map(Row::of).collect();
    assert!(rows.len() > 15, "the lines are there");
    rows
}

/// The headings and list items that begin with a message and its levels, such as ``- `contending` (info)``.
pub fn entries(page: &str) -> Vec<&str> {
    let begins = page.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("- ").or_else(|| line.strip_prefix("### "))
    });
    begins.filter(|line| line.starts_with('`')).filter_map(|line| Some(line.split_once(')')?.0)).collect()
}

/// The words of a cell.
fn words(cell: &str) -> Vec<String> {
    cell.split(", ").filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

impl Row {
    fn of(line: &str) -> Self {
        let cells: Vec<_> = line.split('\t').collect();
        let [message, levels, module, fields] = cells[..] else { panic!("four cells: {line:?}") };
        let (text, goes_on) = message.strip_suffix('…').map_or((message, false), |text| (text, true));
        let mut fields = words(fields);
        fields.sort();
        Self { message: text.to_owned(), goes_on, levels: words(levels), module: module.to_owned(), fields }
    }

    /// How the entry of this line begins on the page.
    pub fn entry(&self) -> String {
        let more = if self.goes_on { "…" } else { "" };
        format!("`{}{more}` ({}", self.message, self.levels.join(", "))
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
