//! `docs/LOGGING.md` matches the code: each message in it occurs as it says, and no other message does.

mod filters;
pub mod heard;
mod lines;
mod repeats;
mod scenes;
mod sources;
mod table;

use self::{heard::Heard, table::Row};

#[test]
fn logging_document_matches_the_code() {
    let rows = table::rows(include_str!("../../../docs/LOGGING.md"));
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
            complaints.push(format!("not (once) in the document: {event:?}"));
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
