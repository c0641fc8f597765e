//! What a panic of the program's own code says.

use std::any::Any;

/// The text of a panic.
pub(super) fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::message;
    use std::panic::{catch_unwind, panic_any};

    #[test]
    fn the_log_repeats_the_words_of_a_panic() {
        let said = |panics: fn()| message(&*catch_unwind(panics).unwrap_err()).to_owned();
        assert_eq!(said(|| panic!("the disk is full")), "the disk is full");
        assert_eq!(said(|| panic!("the disk {} is full", 1)), "the disk 1 is full");
        assert_eq!(said(|| panic_any(7)), "no message");
    }
}
