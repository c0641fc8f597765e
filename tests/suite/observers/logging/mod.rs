//! `docs/observability/log-lines.tsv` matches the code: each line in it occurs as it says, and no other line does. And
//! `docs/TROUBLESHOOTING.md` explains each of them.

mod filters;
pub mod heard;
mod lines;
mod repeats;
mod scenes;
mod slow_stops;
mod sources;
mod table;

use self::{heard::Heard, table::Row};

const LINES: &str = include_str!("../../../../docs/observability/log-lines.tsv");
const PAGE: &str = include_str!("../../../../docs/TROUBLESHOOTING.md");

#[test]
fn page_explains_each_log_line_once() {
    let mut listed: Vec<String> = table::rows(LINES).iter().map(Row::entry).collect();
    // Some messages that are no log lines have remarks in brackets.
    let is_levels = |entry: &&str| {
        let levels = entry.rsplit_once("` (").map_or("", |(_, levels)| levels);
        !levels.is_empty() && levels.split(", ").all(|it| ["debug", "info", "warn", "error"].contains(&it))
    };
    let mut explained: Vec<&str> = table::entries(PAGE).into_iter().filter(is_levels).collect();
    listed.sort();
    explained.sort_unstable();
    assert_eq!(explained, listed);
}

#[test]
fn list_of_log_lines_matches_the_code() {
    let rows = table::rows(LINES);
    let heard = Heard::listen();
    scenes::play_all();
    let events = heard.events();
    let unlike = |row: &Row| -> Vec<String> {
        let missing = row.levels.iter().filter(|level| !events.iter().any(|it| row.describes(it, level)));
        missing.map(|level| format!("never heard at {level}: {row:?}")).collect()
    };
    let mut complaints: Vec<String> = rows.iter().flat_map(unlike).collect();
    for event in &events {
        let fitting = rows.iter().filter(|row| row.levels.iter().any(|level| row.describes(event, level)));
        if fitting.count() != 1 {
            complaints.push(format!("not (once) in the list: {event:?}"));
        }
    }
    for place in sources::callsites() {
        if !events.iter().any(|event| event.place == place) {
            complaints.push(format!("no scene comes by {place}"));
        }
    }
    complaints.sort();
    complaints.dedup();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
