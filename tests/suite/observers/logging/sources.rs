//! The places in the code that log.

use std::{fs, path::Path};

/// Each place as `tracing` names it, except the in-process API server, which logs nothing.
pub fn callsites() -> Vec<String> {
    let mut places = Vec::new();
    search(Path::new("src"), &mut places);
    assert!(places.len() > 10, "the sources are there: {places:?}");
    places
}

fn search(folder: &Path, places: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("tests run in the crate's folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            search(&path, places);
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source");
        let logs = |line: &str| {
            let line = line.trim_start();
            !line.starts_with("//")
                && ["trace", "debug", "info", "warn", "error", "event"]
                    .iter()
                    .any(|it| line.contains(&format!("tracing::{it}!(")))
        };
        for (number, _) in text.lines().enumerate().filter(|(_, line)| logs(line)) {
            places.push(format!("{}:{}", path.display(), number + 1));
        }
    }
}
