//! Plays a change: runs the tests that reach it, tool by tool.
//!
//! A test that is skipped could not have stood alone in the table:
//! - `gate` and `suite` run their tests from the shortest to the longest, and end once tests of three files have found the
//!   change.
//! - A test that takes long, the histories, the models and `sim` run only if nothing else has found the change.

use crate::{
    base::{self, TOOLS, Test},
    changes::Change,
    programs::{self, Built},
    setting,
    table::{self, Row},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// So many files of tests of one tool are enough.
const ENOUGH: usize = 3;
/// A test takes long if it takes more than this, in seconds.
const LONG: f64 = 0.5;
/// The tools that take long.
const LAST: [&str; 3] = ["histories", "model", "sim"];

pub fn all(names: &[&str]) -> ExitCode {
    let jobs = setting("JOBS", 2);
    let built = programs::all();
    let tests = base::tests(&built, jobs);
    let file = Path::new("target/measure").join(format!("played-{}.tsv", built.tree.fingerprint));
    let played: BTreeSet<_> = if file.exists() {
        table::read(&file).into_iter().map(|it| it.name).collect()
    } else {
        BTreeSet::new()
    };
    let chosen = |it: &Change| names.is_empty() || names.iter().any(|name| it.name.contains(name));
    let numbered = built.tree.changes.iter().enumerate();
    let open: Vec<_> = numbered.filter(|it| chosen(it.1) && !played.contains(&it.1.name)).collect();
    eprintln!(
        "{} changes are played by {} tests, {} were played before",
        open.len(),
        tests.len(),
        played.len()
    );
    let rows = Mutex::new(OpenOptions::new().create(true).append(true).open(&file).expect("a file"));
    let next = AtomicUsize::new(0);
    let limit = Duration::from_secs(60 * setting("MINUTES", 1_000_000) as u64);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some((number, change)) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let began = Instant::now();
                    if began.duration_since(start) >= limit {
                        break;
                    }
                    let row = Played { built: &built, tests: &tests, number: *number, change }.row();
                    eprintln!("{:6.1} s {} {}", began.elapsed().as_secs_f64(), row.summary(), row.name);
                    writeln!(rows.lock().expect("a file"), "{}", row.line()).expect("a file");
                }
            });
        }
    });
    let rows: BTreeMap<_, _> = table::read(&file).into_iter().map(|it| (it.name.clone(), it)).collect();
    let in_order: Vec<_> = built.tree.changes.iter().filter_map(|it| rows.get(&it.name)).collect();
    let lines: Vec<_> = in_order.iter().map(|it| it.line()).collect();
    fs::write("target/measure/table.tsv", format!("{}\n{}\n", table::head(), lines.join("\n")))
        .expect("a file");
    let must = |it: &&Change| chosen(it) && !it.is_mutant() && it.may_be_missed.is_none();
    let is_missed = |it: &&Change| rows.get(&it.name).is_some_and(|row| !row.is_found());
    let missed: Vec<_> = built.tree.changes.iter().filter(must).filter(is_missed).collect();
    for it in &missed {
        println!("nothing finds {}", it.name);
    }
    println!(
        "{} changes, {} not found, {} not played yet: target/measure/table.tsv",
        rows.len(),
        rows.values().filter(|it| !it.is_found()).count(),
        built.tree.changes.len() - rows.len()
    );
    if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Played<'a> {
    built: &'a Built,
    tests: &'a [Test],
    number: usize,
    change: &'a Change,
}

impl Played<'_> {
    fn row(&self) -> Row {
        let mut row = Row { name: self.change.name.clone(), found: TOOLS.iter().map(|_| None).collect() };
        let reached: Vec<_> = self.tests.iter().filter(|it| self.is_reached(it)).collect();
        let takes_long = |it: &Test| it.seconds > LONG || LAST.contains(&TOOLS[it.tool]);
        for round in [false, true] {
            for (number, tool) in TOOLS.iter().enumerate() {
                let of_round = |it: &&&Test| it.tool == number && takes_long(it) == round;
                let tests: Vec<_> = reached.iter().filter(of_round).copied().collect();
                let is_needed = !round || !row.is_found();
                if is_needed && !tests.is_empty() {
                    let found = self.found_by(tool, &tests);
                    row.found[number].get_or_insert_default().extend(found);
                }
            }
        }
        row
    }

    fn is_reached(&self, test: &Test) -> bool {
        match self.built.tree.sites.get(&self.number) {
            Some(site) => test.reached.contains(site),
            None => test.reached.contains(self.short_name()),
        }
    }

    fn short_name(&self) -> &str {
        self.change.name.rsplit('/').next().unwrap_or_default()
    }

    /// The tests of one tool that find the change.
    fn found_by(&self, tool: &str, tests: &[&Test]) -> Vec<String> {
        if ["gate", "suite"].contains(&tool) {
            return self.found_by_few(tests);
        }
        let mut programs = BTreeMap::<&str, Vec<&Test>>::new();
        for test in tests {
            programs.entry(&test.program).or_default().push(test);
        }
        programs.values().flat_map(|tests| self.found_by_tests(tests)).collect()
    }

    fn found_by_few(&self, tests: &[&Test]) -> Vec<String> {
        let mut found = Vec::new();
        let mut rest = tests;
        let file = |name: &String| name.rsplit_once("::").map_or(String::new(), |it| it.0.to_owned());
        while !rest.is_empty() {
            let mut seconds = 0.0;
            let fits = |it: &&&Test| {
                seconds += it.seconds;
                seconds < 15.0
            };
            let count = rest.iter().take(12).take_while(fits).count().max(1);
            let (batch, after) = rest.split_at(count);
            found.extend(self.found_by_tests(batch));
            rest = after;
            if found.iter().map(file).collect::<BTreeSet<_>>().len() >= ENOUGH {
                break;
            }
        }
        // A test that waits for time may fail by chance beside others.
        if found.len() <= 2 {
            found.retain(|name| {
                tests.iter().filter(|it| it.name == *name).all(|it| !self.found_by_tests(&[it]).is_empty())
            });
        }
        found
    }

    /// Runs tests of one program together, and returns those that fail.
    fn found_by_tests(&self, tests: &[&Test]) -> Vec<String> {
        let program = &self.built.programs[&tests[0].program];
        let number = (self.number + 1).to_string();
        let change = if self.change.in_line { self.short_name() } else { &number };
        let (longest, sum) =
            tests.iter().fold((0.0_f64, 0.0), |it, test| (it.0.max(test.seconds), it.1 + test.seconds));
        let seconds = 20.0 + 3.0 * longest + sum;
        let names: Vec<_> = tests.iter().map(|it| it.name.as_str()).collect();
        // The harness of this program knows one filter.
        let arguments: Vec<_> = match tests[0].program.as_str() {
            "cluster" => vec!["conformance::in_process::"],
            _ => [&["--exact"], &names[..]].concat(),
        };
        let run = program.run(&arguments, &[("LEADER_GATE_CHANGE", change)], seconds);
        let mut found: Vec<_> =
            run.failed.iter().filter(|it| names.contains(&it.as_str())).cloned().collect();
        if let Some(why) = run.ended {
            let silent = names.iter().filter(|it| !run.passed.contains(**it) && !run.failed.contains(**it));
            found.extend(silent.map(|it| format!("{it} ({why})")));
        }
        found
    }
}
