//! Text from outside, for a log line, an error or a page.

use std::iter;

/// The most characters of a text from outside.
const LONGEST: usize = 500;

/// The text as one line of at most 500 characters. White space becomes one space each, and a character that is not
/// printable is spelled out, as `\u{1b}`. So a server or a proxy can neither forge a line of the log nor steer a terminal.
///
/// ```
/// use kube_leader_gate::extension::one_line;
///
/// assert_eq!(one_line("<html>\r\n<h1>502 Bad Gateway</h1>\n"), "<html> <h1>502 Bad Gateway</h1>");
/// assert_eq!(one_line("\u{1b}[2J"), r"\u{1b}[2J");
/// ```
#[must_use]
pub fn one_line(text: &str) -> String {
    bounded(text, LONGEST)
}

/// The same with at most so many characters.
pub(crate) fn bounded(text: &str, longest: usize) -> String {
    let words = text.split_whitespace().enumerate();
    let whole = words.flat_map(|(at, word)| iter::repeat_n(' ', at.min(1)).chain(word.chars()));
    let mut whole = whole.flat_map(printable);
    let mut line: String = whole.by_ref().take(longest).collect();
    if whole.next().is_some() {
        line.push('…');
    }
    line
}

/// The character, or its escape. An escape of a quote or a backslash is not needed.
fn printable(it: char) -> impl Iterator<Item = char> {
    let plain = it.is_ascii_graphic() || it == ' ';
    iter::repeat_n(it, plain.into()).chain(it.escape_debug().filter(move |_| !plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prelude::any, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn printable_text_stays() {
        for text in ["", "a \"b\" \\ c", "leases.coordination.k8s.io \"größer\" 世界"] {
            assert_eq!(one_line(text), text);
        }
    }

    #[test]
    fn what_steers_a_terminal_or_forges_a_line_is_spelled_out() {
        for (text, line) in [
            ("a\nWARN b", "a WARN b"),
            ("a\r\n\t\u{2028}\u{85}b", "a b"),
            ("\u{1b}]0;title\u{7}", r"\u{1b}]0;title\u{7}"),
            ("\u{9b}2J", r"\u{9b}2J"),
            ("a\u{202e}b\u{2066}c\u{feff}\u{200b}", r"a\u{202e}b\u{2066}c\u{feff}\u{200b}"),
            ("a\u{0}", r"a\0"),
        ] {
            assert_eq!(one_line(text), line, "{text:?}");
        }
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!(one_line(&"ä".repeat(500)), "ä".repeat(500));
        assert_eq!(one_line(&"ä".repeat(501)), "ä".repeat(500) + "…");
    }

    proptest! {
        #[test]
        fn any_text_becomes_one_bounded_line(text in any::<String>()) {
            let line = one_line(&text);
            prop_assert!(!line.chars().any(char::is_control), "{line:?}");
            prop_assert!(line.chars().count() <= LONGEST + 1);
            prop_assert_eq!(one_line(&line), line);
        }
    }
}
