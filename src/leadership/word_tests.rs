//! Which write wakes a drain.

use super::Word;

fn enter(word: &Word, writes: usize) {
    for _ in 0..writes {
        assert!(word.enter(|| 10).is_ok());
    }
}

#[test]
fn s4_the_last_write_behind_a_closed_gate_wakes_the_drain_and_no_other_write_does() {
    let word = Word::new();
    word.open(1_000);
    enter(&word, 2);
    assert!(!word.leave() && !word.leave(), "the gate is open");
    enter(&word, 2);
    word.close();
    assert!(!word.leave(), "another write is under way");
    assert!(word.leave());
    word.open(1_000);
    enter(&word, 2);
    word.revoke();
    assert!(!word.leave(), "another write is under way");
    assert!(word.leave());
}
