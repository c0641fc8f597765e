//! What is written into docs/RESULTS.md and benches/README.md, between their comments, and into docs/performance.

mod costs;
mod rounds;

use crate::{
    failure::Failure,
    place,
    record::{self, Table},
};
use std::{fs, path::PathBuf};

const RESULTS: &str = "docs/RESULTS.md";

/// Each table of the costs, with its document and the name of its part there.
const COSTS: [(Table, &str, &str); 3] = [
    (Table::Build, "benches/README.md", "builds"),
    (Table::Idle, RESULTS, "idle"),
    (Table::Many, RESULTS, "many"),
];

pub(crate) fn render_all() -> Result<(), Failure> {
    let there = [render_play()?, render_cost()?];
    if there.contains(&true) {
        Ok(())
    } else {
        Err("no results: run `make -C benches peers` or `make -C benches cost` first".into())
    }
}

/// Writes the results of the last play. False when there are none.
pub(crate) fn render_play() -> Result<bool, Failure> {
    let Some((conditions, rounds)) = record::last(record::PLAY)? else { return Ok(false) };
    for (name, plot) in rounds::plots(&rounds) {
        fs::create_dir_all(folder())?;
        fs::write(folder().join(name), plot)?;
    }
    splice(RESULTS, "peers", &rounds::table(&conditions, &rounds))?;
    Ok(true)
}

/// Writes the results of the last measurement of costs. What it has not measured stays as it is. False when there are none.
pub(crate) fn render_cost() -> Result<bool, Failure> {
    let Some((conditions, costs)) = record::last(record::COST)? else { return Ok(false) };
    for (table, document, name) in COSTS {
        if let Some(part) = costs::part(&conditions, &costs, table) {
            splice(document, name, &part)?;
        }
    }
    Ok(true)
}

fn folder() -> PathBuf {
    place::root().join("docs/performance")
}

fn splice(document: &str, name: &str, content: &str) -> Result<(), Failure> {
    let path = place::root().join(document);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let new = spliced(&text, name, content).ok_or_else(|| {
        format!("{} has no place for the results: <!-- {name} -->, and <!-- end --> below it", path.display())
    })?;
    fs::write(&path, new)?;
    println!("written: the part {name:?} of {document}");
    Ok(())
}

/// The text with other content between two comments.
fn spliced(text: &str, name: &str, content: &str) -> Option<String> {
    let (before, rest) = text.split_once(&format!("<!-- {name} -->\n"))?;
    let (_, after) = rest.split_once("<!-- end -->")?;
    Some(format!("{before}<!-- {name} -->\n{content}<!-- end -->{after}"))
}

#[cfg(test)]
mod tests {
    use super::spliced;

    #[test]
    fn content_is_replaced_between_its_comments() {
        let text = "a\n<!-- idle -->\nold\n<!-- end -->\nb\n<!-- peers -->\nold\n<!-- end -->\nc\n";
        let expected = "a\n<!-- idle -->\nold\n<!-- end -->\nb\n<!-- peers -->\nnew\n<!-- end -->\nc\n";
        assert_eq!(spliced(text, "peers", "new\n").as_deref(), Some(expected));
        let expected = "a\n<!-- idle -->\nnew\n<!-- end -->\nb\n<!-- peers -->\nold\n<!-- end -->\nc\n";
        assert_eq!(spliced(text, "idle", "new\n").as_deref(), Some(expected));
        assert_eq!(spliced(text, "others", "new\n"), None);
    }
}
