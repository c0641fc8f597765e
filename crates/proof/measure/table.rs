//! The rows of a table: tab-separated, a change and then a cell for each tool. `-` means that no test of the tool reaches the
//! change, `0` that none finds it, and otherwise the cell has the number of tests that find it and the first ones.

use crate::base::TOOLS;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::ExitCode,
};

/// So many names are in a cell.
const NAMED: usize = 4;

#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    /// For each tool that reaches the change, the tests that find it.
    pub found: Vec<Option<Vec<String>>>,
}

pub fn head() -> String {
    format!("change\t{}", TOOLS.join("\t"))
}

impl Row {
    pub fn is_found(&self) -> bool {
        self.tests().next().is_some()
    }

    fn tests(&self) -> impl Iterator<Item = (usize, &String)> {
        let cells = self.found.iter().enumerate();
        cells.flat_map(|(tool, cell)| cell.iter().flatten().map(move |it| (tool, it)))
    }

    pub fn line(&self) -> String {
        let cell = |it: &Option<Vec<String>>| match it {
            None => "-".to_owned(),
            Some(found) if found.is_empty() => "0".to_owned(),
            Some(found) => format!("{}: {}", found.len(), found[..found.len().min(NAMED)].join(", ")),
        };
        let cells: Vec<_> = self.found.iter().map(cell).collect();
        format!("{}\t{}", self.name, cells.join("\t"))
    }

    /// The tools that find it, with the numbers of their tests.
    pub fn summary(&self) -> String {
        let cells = TOOLS.iter().zip(&self.found).filter_map(|(tool, it)| Some((tool, it.as_ref()?.len())));
        let found: Vec<_> =
            cells.filter(|it| it.1 > 0).map(|(tool, count)| format!("{tool} {count}")).collect();
        if found.is_empty() { "NOT FOUND".to_owned() } else { found.join(", ") }
    }
}

pub fn read(file: impl AsRef<Path>) -> Vec<Row> {
    let text =
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.as_ref().display()));
    let row = |line: &str| {
        let mut cells = line.split('\t');
        let name = cells.next().unwrap_or_default().to_owned();
        let found = cells.map(|cell| match cell {
            "-" => None,
            "0" => Some(Vec::new()),
            _ => {
                let (count, names) = cell.split_once(": ").expect("a count and names");
                let mut names: Vec<_> = names.split(", ").map(str::to_owned).collect();
                names.resize(count.parse().expect("a count"), "another".to_owned());
                Some(names)
            }
        });
        Row { name, found: found.collect() }
    };
    text.lines().filter(|it| !it.starts_with("change\t") && !it.is_empty()).map(row).collect()
}

/// The file of a test: its path without its last name. A history or a whole replica has the name of its tool.
fn file_of(tool: usize, test: &str) -> String {
    let test = test.split(' ').next().unwrap_or_default();
    let folder = test.rsplit_once("::").map_or("", |it| it.0);
    format!("{} {folder}", TOOLS[tool])
}

/// Prints for each file how many changes it finds, and which of them no other file finds.
pub fn alone(rows: &[Row]) -> ExitCode {
    let mut files = BTreeMap::<String, (usize, Vec<&str>)>::new();
    for row in rows {
        let named = row.tests().filter(|it| it.1 != "another");
        let found: BTreeSet<_> = named.map(|(tool, test)| file_of(tool, test)).collect();
        // A test whose name has no room in the table may be of another file.
        let has_more = row.tests().any(|it| it.1 == "another");
        for file in &found {
            let it = files.entry(file.clone()).or_default();
            it.0 += 1;
            if found.len() == 1 && !has_more {
                it.1.push(&row.name);
            }
        }
    }
    for (file, (count, alone)) in files {
        println!("{file}: {count}, alone {}", alone.len());
        for it in &alone {
            println!("    {it}");
        }
    }
    for it in rows.iter().filter(|it| !it.is_found()) {
        println!("not found: {}", it.name);
    }
    ExitCode::SUCCESS
}

/// Prints what was found and is not found any more.
pub fn compare(old: &[Row], new: &[Row]) -> ExitCode {
    let old: BTreeMap<_, _> = old.iter().map(|it| (&it.name, it)).collect();
    let was_found = |it: &&Row| old.get(&it.name).is_some_and(|it| it.is_found());
    let lost: Vec<_> = new.iter().filter(|it| !it.is_found()).filter(was_found).collect();
    for it in &lost {
        println!("not found any more: {}", it.name);
    }
    for it in old.keys().filter(|name| !name.starts_with("src") && !new.iter().any(|it| it.name == ***name)) {
        println!("a defect that has gone: {it}");
    }
    let both = new.iter().filter(|it| old.contains_key(&it.name)).count();
    let survivors = |rows: &mut dyn Iterator<Item = &Row>| rows.filter(|it| !it.is_found()).count();
    println!(
        "old: {} changes, {} not found; new: {}, {} not found; {both} in both tables, {} not found any more",
        old.len(),
        survivors(&mut old.values().copied()),
        new.len(),
        survivors(&mut new.iter()),
        lost.len(),
    );
    for row in new.iter().filter(|it| !it.is_found() && !old.contains_key(&it.name)) {
        println!("new, and not found: {}", row.name);
    }
    if lost.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
