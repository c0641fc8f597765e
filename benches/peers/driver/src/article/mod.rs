//! What is written into docs/RESULTS.md, between its comments, and into docs/performance.

mod costs;
mod rounds;

use crate::{failure::Failure, place, record};
use std::{fs, path::PathBuf};

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
    splice("peers", &rounds::table(&conditions, &rounds))?;
    Ok(true)
}

/// Writes the results of the last measurement of costs. False when there are none.
pub(crate) fn render_cost() -> Result<bool, Failure> {
    let Some((conditions, costs)) = record::last(record::COST)? else { return Ok(false) };
    splice("cost", &costs::tables(&conditions, &costs))?;
    Ok(true)
}

fn folder() -> PathBuf {
    place::root().join("docs/performance")
}

fn splice(name: &str, content: &str) -> Result<(), Failure> {
    let path = place::root().join("docs/RESULTS.md");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let new = spliced(&text, name, content).ok_or_else(|| {
        format!("{} has no place for the results: <!-- {name} -->, and <!-- end --> below it", path.display())
    })?;
    fs::write(&path, new)?;
    println!("written: the part {name:?} of docs/RESULTS.md");
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
        let text = "a\n<!-- cost -->\nold\n<!-- end -->\nb\n<!-- peers -->\nold\n<!-- end -->\nc\n";
        let expected = "a\n<!-- cost -->\nold\n<!-- end -->\nb\n<!-- peers -->\nnew\n<!-- end -->\nc\n";
        assert_eq!(spliced(text, "peers", "new\n").as_deref(), Some(expected));
        let expected = "a\n<!-- cost -->\nnew\n<!-- end -->\nb\n<!-- peers -->\nold\n<!-- end -->\nc\n";
        assert_eq!(spliced(text, "cost", "new\n").as_deref(), Some(expected));
        assert_eq!(spliced(text, "others", "new\n"), None);
    }
}
