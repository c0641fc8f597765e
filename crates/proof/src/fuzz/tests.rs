//! The bodies of `make -C crates/proof fuzz` on changed seeds, in `make test`.

use super::{LEASES, MARKS, REQUESTS, TIMING, Target, WATCHES};
use proptest::{collection::vec, prelude::*, sample::Index};
use std::fmt;

/// One change of an input.
#[derive(Clone, Debug)]
enum Edit {
    /// Put a word there.
    Insert(Index, Index),
    /// Put a word there, in place of so many bytes.
    Replace(Index, Index, usize),
    Remove(Index, usize),
    Byte(Index, u8),
    /// Repeat these bytes, there.
    Repeat(Index, usize, Index),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<Index>;
    prop_oneof![
        4 => (at(), at()).prop_map(|(at, word)| Edit::Insert(at, word)),
        4 => (at(), at(), 1..12_usize).prop_map(|(at, word, length)| Edit::Replace(at, word, length)),
        2 => (at(), 1..12_usize).prop_map(|(at, length)| Edit::Remove(at, length)),
        1 => (at(), any::<u8>()).prop_map(|(at, byte)| Edit::Byte(at, byte)),
        1 => (at(), 1..40_usize, at()).prop_map(|(from, length, to)| Edit::Repeat(from, length, to)),
    ]
}

fn edited(target: Target, seed: Index, edits: Vec<Edit>) -> Vec<u8> {
    let mut bytes = seed.get(target.seeds).as_bytes().to_vec();
    for edit in edits {
        // One place behind the last byte.
        let place = |at: Index, bytes: &[u8]| at.index(bytes.len() + 1);
        let word = |word: Index| word.get(target.words).as_bytes().to_vec();
        let range = |at: usize, length: usize, bytes: &[u8]| at..(at + length).min(bytes.len());
        let (range, with) = match edit {
            Edit::Insert(at, put) => (range(place(at, &bytes), 0, &bytes), word(put)),
            Edit::Replace(at, put, length) => (range(place(at, &bytes), length, &bytes), word(put)),
            Edit::Remove(at, length) => (range(place(at, &bytes), length, &bytes), Vec::new()),
            Edit::Byte(at, byte) => (range(place(at, &bytes), 1, &bytes), vec![byte]),
            Edit::Repeat(from, length, to) => {
                let again = bytes[range(place(from, &bytes), length, &bytes)].to_vec();
                (range(place(to, &bytes), 0, &bytes), again)
            }
        };
        bytes.splice(range, with);
    }
    bytes
}

/// Shown as text, since most of it is.
struct Input(Vec<u8>);

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

fn input(target: Target) -> impl Strategy<Value = Input> {
    (any::<Index>(), vec(edit(), 0..7)).prop_map(move |(seed, edits)| Input(edited(target, seed, edits)))
}

fn hold(target: Target, cases: u32) {
    for seed in target.seeds {
        (target.body)(seed.as_bytes());
    }
    // `PROPTEST_CASES` asks for more.
    let cases = ProptestConfig::default().cases.max(cases);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) };
    proptest!(config, |(bytes in input(target))| (target.body)(&bytes.0));
}

#[test]
fn no_changed_request_passes_as_a_read() {
    hold(REQUESTS, 6_000);
}

#[test]
fn any_answer_is_a_lease_or_an_error() {
    hold(LEASES, 2_000);
}

#[test]
fn any_watch_gives_what_its_lines_say() {
    hold(WATCHES, 2_000);
}

#[test]
fn any_accepted_timing_is_in_its_range() {
    hold(TIMING, 6_000);
}

#[test]
fn any_annotations_keep_their_rules() {
    hold(MARKS, 4_000);
}
