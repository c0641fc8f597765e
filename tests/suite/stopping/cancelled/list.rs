//! Finds the public futures and streams in the source, and the test of each.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Each public future or stream, by its file and its name, and the tests that drop it at each poll.
const TESTS: &[(&str, &[&str])] = &[
    ("election/candidate.rs changes", &["changes_dropped_at_each_poll_lose_no_state"]),
    ("election/candidate.rs elected", &["elected_dropped_at_each_poll_misses_no_term"]),
    ("election/candidate.rs ended", &["ended_dropped_at_each_poll_tells_the_end"]),
    ("election/candidate.rs gains", &["gains_dropped_at_each_poll_lose_no_gain"]),
    ("election/candidate.rs guard", &["s4_guarded_write_dropped_at_each_poll_delays_the_release"]),
    ("election/running.rs step_down", &["s4_step_down_dropped_at_each_poll_yields_to_another_candidate"]),
    ("election/running.rs stop", &["s4_stop_dropped_at_each_poll_leaves_the_lease_to_expire"]),
    ("election/work/gated.rs run", &["s10_run_dropped_at_each_poll_leaves_nothing"]),
    ("election/work/gated.rs run_until", &["s10_run_until_dropped_at_each_poll_leaves_nothing"]),
    (
        "election/work/leading.rs run_while_leading",
        &[
            "s11_leading_work_dropped_at_each_poll_leaves_nothing",
            "s7_theft_closes_the_gate_of_a_run_at_each_poll",
        ],
    ),
    (
        "gate/future.rs ResponseFuture",
        &[
            "s4_gated_write_dropped_at_each_poll_is_unanswered",
            "s4_kube_write_dropped_at_each_poll_delays_the_release",
            "s15_client_is_usable_after_each_dropped_write",
        ],
    ),
    ("gate/settings.rs guard", &["s4_guarded_write_dropped_at_each_poll_is_unanswered"]),
    ("leadership/permit.rs term_ended", &["term_ended_dropped_at_each_poll_can_be_repeated"]),
    ("leadership/follow.rs next", &["next_change_dropped_at_each_poll_loses_no_state"]),
    ("leadership/grantor.rs watch_deadline", &["s1_watch_deadline_dropped_at_each_poll_keeps_no_gate_open"]),
    ("leadership/reader.rs drain", &["drain_dropped_at_each_poll_can_be_repeated"]),
    ("leadership/reader.rs elected", &["elected_of_a_leadership_dropped_at_each_poll_misses_no_term"]),
    ("lease/lock.rs create", &["create_of_a_lock_dropped_at_each_poll_can_be_repeated"]),
    ("lease/lock.rs get", &["get_of_a_lock_dropped_at_each_poll_can_be_repeated"]),
    (
        "lease/lock.rs update",
        &[
            "update_of_a_lock_dropped_at_each_poll_can_be_repeated",
            "s3_release_dropped_at_each_poll_has_closed_the_gate",
        ],
    ),
    (
        "lease/lock.rs watch",
        &[
            "watch_of_a_lock_dropped_at_each_poll_leaves_no_watch",
            "watch_dropped_at_each_poll_does_not_end_its_neighbours",
            "events_of_a_lock_dropped_at_each_poll_lose_nothing",
        ],
    ),
    ("lease/pool/access.rs authorization", &["authorization_dropped_at_each_poll_can_be_repeated"]),
    ("runtime/caught_up/mod.rs caught_up", &["caught_up_dropped_at_each_poll_leaves_no_task"]),
    ("runtime/keep_open.rs keep_open", &["keep_open_dropped_at_each_poll_leaves_no_task"]),
    ("runtime/reconcile.rs gated", &["reconciliation_dropped_at_each_poll_leaves_nothing"]),
    ("runtime/replay.rs during", &["replay_dropped_at_each_poll_loses_no_event"]),
    ("runtime/replay.rs replay", &[WATCHED]),
    ("shutdown.rs shutdown_signal", &["shutdown_signal_dropped_at_each_poll_leaves_the_signal_to_others"]),
    (
        "testing/lock_conformance.rs lock_conformance",
        &["conformance_check_dropped_at_each_poll_can_be_repeated"],
    ),
];

const WATCHED: &str = "watched_stream_dropped_at_each_poll_loses_no_event";

/// What a public function may return to be in the list.
const FUTURES: [&str; 5] = ["impl Future", "impl Stream", "BoxFuture<", "ResponseFuture<", "OwnedNotified"];

/// How the documentation says what a drop does.
const WORDS: [&str; 2] = ["ancel-safe", "ropping"];

#[test]
fn each_public_future_has_a_test_that_drops_it() {
    let found: BTreeSet<_> =
        source().iter().flat_map(|(file, text)| futures(file, text)).map(|it| it.0).collect();
    let listed: BTreeSet<_> = TESTS.iter().map(|(future, _)| (*future).to_owned()).collect();
    assert_eq!(found, listed, "write a test that drops it at each poll, and list it here");
    let tests: String = texts(&root().join("tests/suite/stopping/cancelled")).into_values().collect();
    for test in TESTS.iter().flat_map(|(_, tests)| *tests) {
        let body =
            tests.split_once(&format!("#[test]\nfn {test}() {{")).unwrap_or_else(|| panic!("no {test}"));
        let body = body.1.split_once("\n}\n").expect("an end").0;
        assert!(body.contains("dropped_at_"), "{test} drops nothing");
    }
}

#[test]
fn each_public_future_says_what_a_drop_does() {
    for (file, text) in source() {
        // The calls of a lock have one text, at the trait.
        for (name, docs) in futures(&file, &text).into_iter().filter(|_| file != "lease/lock.rs") {
            let says = WORDS.iter().any(|word| docs.contains(word));
            // The type has the word, and these functions only make it.
            assert!(says || name.ends_with(" guard"), "{name}: say whether it is cancel-safe");
        }
    }
}

#[test]
fn scanner_finds_each_way_to_offer_a_future() {
    let text = "/// Waits.\n    pub async fn a(&self) {}\n    async fn private() {}\n    pub(crate) async fn inner() {}\n\
                pub fn b<T>(\n    x: T,\n) -> impl Future<Output = T> {}\n    pub fn c(f: impl Future) -> u8 {}\n\
                pub fn j<F>(f: F) -> impl Fn() -> BoxFuture<()>\nwhere\n    F: Fn() -> u8,\n{}\n\
                pub trait T {\n    fn d(&self) -> impl Future;\n    fn e(&self);\n}\nfn f() -> impl Future {}\n\
                pub struct G;\nimpl Stream for G {}\nimpl<T> Future for H<T> {}\nstruct H<T>;\npub struct Hs;\n\
                \n#[cfg(test)]\nmod tests {\n    pub async fn i() {}\n}";
    let names: Vec<_> = futures("x.rs", text).into_keys().collect();
    assert_eq!(names, ["x.rs G", "x.rs a", "x.rs b", "x.rs d", "x.rs j"]);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files of the crate, without those that only tests have.
fn source() -> BTreeMap<String, String> {
    let mut files = texts(&root().join("src"));
    files.retain(|file, _| !file.contains("test.") && !file.contains("tests"));
    assert!(files.len() > 80, "only {} files", files.len());
    files
}

/// The Rust files in a folder and below it, by their path from there.
fn texts(folder: &Path) -> BTreeMap<String, String> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    files
}

/// The public futures and streams of a file, each with its documentation.
fn futures(file: &str, text: &str) -> BTreeMap<String, String> {
    // Unit tests are at the end of a file.
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut found = BTreeMap::new();
    let (mut docs, mut public_trait) = (String::new(), false);
    for (at, line) in lines(code) {
        let line = line.trim_start();
        if let Some(doc) = line.strip_prefix("///") {
            docs.push_str(doc);
            continue;
        }
        public_trait = (public_trait || line.starts_with("pub trait ")) && !code[at..].starts_with('}');
        let function = line.strip_prefix("pub ").unwrap_or(if public_trait { line } else { "" });
        if let Some(name) = function.strip_prefix("async fn ").or(function.strip_prefix("fn ")) {
            let signature = code[at..].split(['{', ';']).next().unwrap_or_default();
            let signature = signature.split("where\n").next().unwrap_or_default();
            let output = signature.rsplit_once("->").map_or("", |(_, output)| output);
            if function.starts_with("async") || FUTURES.iter().any(|future| output.contains(future)) {
                found.insert(format!("{file} {}", word(name)), docs.clone());
            }
        }
        let implements = [" Future for ", " Stream for "].iter().find_map(|it| line.split_once(it));
        if let Some((_, name)) = implements.filter(|(before, _)| before.starts_with("impl"))
            && let Some(before) = declaration(code, word(name))
        {
            let above = before.trim_end().rsplit_once("\n\n").map_or(before, |(_, above)| above);
            found.insert(format!("{file} {}", word(name)), above.to_owned());
        }
        if !line.starts_with("#[") {
            docs.clear();
        }
    }
    found
}

/// The code before the public type of this name.
fn declaration<'a>(code: &'a str, name: &str) -> Option<&'a str> {
    let (at, _) = code.match_indices("pub struct ").find(|(at, it)| word(&code[at + it.len()..]) == name)?;
    Some(&code[..at])
}

/// Each line with its place.
fn lines(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.split_inclusive('\n').scan(0, |end, line| {
        let at = *end;
        *end += line.len();
        Some((at, line))
    })
}

/// The name at the start.
fn word(text: &str) -> &str {
    text.split(|it: char| !it.is_alphanumeric() && it != '_').next().unwrap_or_default()
}
