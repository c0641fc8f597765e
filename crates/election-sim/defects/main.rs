//! `defects SEEDS [NAME...]`: puts each defect of `table.txt` into a copy of the tree, one at a time, and says whether the
//! simulation finds it. Fails if it misses one without a reason. As a test, it looks whether each text is still there.
//!
//! A defect is a block of the table: `NAME: what breaks`, the file in `src/election/machine`, the old text (`-`), the new one
//! (`+`), and if the simulation may miss it, why (`?`).

use std::{env, fs, path::Path, process::Command};

const CORE: &str = "src/election/machine";

#[derive(Debug, Default)]
struct Defect {
    name: String,
    file: String,
    old: String,
    new: String,
    may_be_missed: Option<String>,
}

fn table() -> Vec<Defect> {
    let blocks = include_str!("table.txt").split("\n\n").filter(|it| !it.starts_with('#'));
    blocks.map(|it| read(it.trim_end())).collect()
}

fn read(block: &str) -> Defect {
    let mut lines = block.lines();
    let head = lines.next().and_then(|it| it.split_once(": ")).expect("a name and what breaks");
    let mut it = Defect { name: head.0.into(), ..Defect::default() };
    for line in lines {
        let (mark, text) = (line.get(..1).unwrap_or_default(), line.get(2..).unwrap_or_default());
        match mark {
            "-" => it.old = format!("{}{text}\n", it.old),
            "+" => it.new = format!("{}{text}\n", it.new),
            "?" => it.may_be_missed = Some(text.into()),
            _ => it.file = line.into(),
        }
    }
    it.old.pop();
    it.new.pop();
    it
}

/// The file with the defect in it.
fn broken(tree: &Path, defect: &Defect) -> Result<String, String> {
    let text = fs::read_to_string(tree.join(CORE).join(&defect.file)).map_err(|error| error.to_string())?;
    match text.matches(&defect.old).count() {
        1 => Ok(text.replace(&defect.old, &defect.new)),
        n => Err(format!("{}: {} has this text {n} times:\n{}", defect.name, defect.file, defect.old)),
    }
}

fn main() {
    let mut arguments = env::args().skip(1);
    let seeds = arguments.next().expect("SEEDS");
    let names: Vec<_> = arguments.collect();
    let copy = Path::new("target/defects/machine");
    fs::create_dir_all(copy).expect("a folder");
    let copied = Command::new("git")
        .args(["checkout-index", "--all", "--force", "--prefix=target/defects/machine/"])
        .status();
    assert!(copied.is_ok_and(|it| it.success()), "the tree is not copied");
    let mut missed = 0;
    for defect in table().iter().filter(|it| names.is_empty() || names.contains(&it.name)) {
        let broken = broken(copy, defect).unwrap_or_else(|why| panic!("{why}"));
        let file = copy.join(CORE).join(&defect.file);
        let sound = fs::read(&file).expect("a file");
        fs::write(&file, broken).expect("a file");
        let (found, said) = run(copy, &seeds);
        fs::write(&file, sound).expect("a file");
        let why = defect.may_be_missed.as_deref();
        missed += i32::from(!found && why.is_none());
        let outcome =
            if found { said } else { format!("**not found** {}", why.unwrap_or("and it should be")) };
        println!("| `{}` | {outcome} |", defect.name);
    }
    println!("missed without a reason: {missed}");
    std::process::exit(missed.min(1));
}

/// Plays seeds in this tree. Whether the judge finds something, and what.
fn run(tree: &Path, seeds: &str) -> (bool, String) {
    let cargo = |arguments: &[&str]| {
        let target = fs::canonicalize("target").expect("a folder").join("defects/build");
        let mut command = Command::new("cargo");
        command
            .args(arguments)
            .current_dir(tree)
            .env("CARGO_TARGET_DIR", target)
            .env("CARGO_INCREMENTAL", "0");
        command.output().expect("cargo")
    };
    let built = cargo(&["build", "--quiet", "--release", "--package", "election-sim"]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let played = cargo(&["run", "--quiet", "--release", "--package", "election-sim", seeds]);
    let text = String::from_utf8_lossy(&played.stdout);
    let first = text.lines().next().unwrap_or_default();
    let bad = text.lines().last().and_then(|it| it.rsplit(", ").next()).unwrap_or_default();
    (!played.status.success(), format!("{bad} of {seeds}; {first}"))
}

#[test]
fn each_defect_finds_its_text_once() {
    let faults: Vec<_> = table().iter().filter_map(|it| broken(Path::new("../.."), it).err()).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(table().len() >= 60, "only {} defects", table().len());
}
