//! What each test does in the code as it is: whether it passes, how long it takes, and which switches it reaches. It runs
//! alone, in a process of its own. A change is then played by the tests that reach its switch.

use crate::programs::Built;
use std::{
    collections::BTreeSet,
    fmt::Write,
    fs,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

/// What finds changes, in the order of the table's columns. `unit` are the tests of the packages' insides but for the machine.
pub const TOOLS: [&str; 9] =
    ["unit", "machine", "gate", "suite", "conformance", "histories", "model", "loom", "sim"];
/// A test that takes longer, in seconds, is not played. It says more about the machine than about a change.
const LONGEST: f64 = 100.0;

/// A test that passes.
#[derive(Clone, Debug)]
pub struct Test {
    pub tool: usize,
    pub program: String,
    pub name: String,
    pub seconds: f64,
    pub reached: BTreeSet<String>,
}

/// The tool that a test belongs to. Documents and what runs for minutes have none.
fn tool_of(program: &str, name: &str) -> Option<usize> {
    let is = |tool| TOOLS.iter().position(|it| *it == tool);
    match program {
        "kube_leader_gate" if name.starts_with("election::machine::") => is("machine"),
        "kube_leader_gate" | "kube_leader_gate_early_takeover" => is("unit"),
        "gate" => is("gate"),
        "suite" if name.starts_with("documents::") || name.starts_with("stopping::signals::") => None,
        "suite" => is("suite"),
        "cluster" if name.starts_with("conformance::in_process::") => is("conformance"),
        "election-sim" => is("histories"),
        "proof" if name.starts_with("model::tests::rules_hold") => is("model"),
        "loom" => is("loom"),
        "sim" if name == "seeds_bring_no_violation" => is("sim"),
        _ => None,
    }
}

/// Runs each test alone, or reads what another run has found out about the same code.
pub fn tests(built: &Built, jobs: usize) -> Vec<Test> {
    let file = Path::new("target/measure").join(format!("base-{}.tsv", built.tree.fingerprint));
    if !file.exists() {
        let tests = run(built, jobs);
        let mut text = String::new();
        for it in &tests {
            let reached: Vec<_> = it.reached.iter().map(String::as_str).collect();
            let _ = writeln!(text, "{}\t{}\t{:.3}\t{}", it.program, it.name, it.seconds, reached.join(","));
        }
        fs::write(&file, text).expect("a file");
    }
    let text = fs::read_to_string(&file).expect("a file");
    let read = |line: &str| {
        let [program, name, seconds, reached] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        Test {
            tool: tool_of(program, name).expect("a tool"),
            program: program.to_owned(),
            name: name.to_owned(),
            seconds: seconds.parse().expect("seconds"),
            reached: reached.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect(),
        }
    };
    let mut tests: Vec<_> = text.lines().map(read).collect();
    tests.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    tests
}

fn run(built: &Built, jobs: usize) -> Vec<Test> {
    let mut names = Vec::new();
    for (program, it) in &built.programs {
        let tests = it.tests().into_iter().filter(|name| tool_of(program, name).is_some());
        names.extend(tests.map(|name| (program.clone(), name)));
    }
    eprintln!("{} tests run alone, for {}", names.len(), built.tree.fingerprint);
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for job in 0..2 * jobs {
            let (next, found, names) = (&next, &found, &names);
            scope.spawn(move || {
                let file = format!(
                    "{}/reached-{job}",
                    fs::canonicalize("target/measure").expect("a folder").display()
                );
                while let Some((program, name)) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let _ = fs::remove_file(&file);
                    let began = Instant::now();
                    let reaching = [("LEADER_GATE_REACHED", &*file)];
                    let alone = |variables: &[(&str, &str)]| {
                        let run = built.programs[program].run(&["--exact", name], variables, LONGEST);
                        run.ended.is_none() && run.passed.contains(name)
                    };
                    // To write down what it reaches takes allocations, which some tests count.
                    let passes = alone(&reaching) || alone(&[]);
                    let seconds = began.elapsed().as_secs_f64();
                    if !passes {
                        eprintln!("{program} {name} does not pass in {seconds:.0} s, and is not played");
                        continue;
                    }
                    let reached =
                        fs::read_to_string(&file).unwrap_or_default().lines().map(str::to_owned).collect();
                    let tool = 0; // it is read again
                    let test = Test { tool, program: program.clone(), name: name.clone(), seconds, reached };
                    found.lock().expect("a list").push(test);
                }
            });
        }
    });
    found.into_inner().expect("a list")
}
