//! Expressions in CEL, the language of admission policies.

use std::fmt::Write as _;

/// The subresource of a request; the API server leaves an empty one out.
const SUBRESOURCE: &str = "(has(request.subResource) ? request.subResource : '')";

/// A text as a CEL literal. No text can end it.
pub(crate) fn text(text: &str) -> String {
    let mut literal = String::from("'");
    for char in text.chars() {
        match char {
            '\'' | '\\' => {
                literal.push('\\');
                literal.push(char);
            }
            // Line breaks, and characters that show as something else.
            _ if char.is_ascii_graphic() || char == ' ' => literal.push(char),
            _ if u32::from(char) <= 0xffff => {
                let _ = write!(literal, "\\u{:04x}", u32::from(char));
            }
            _ => {
                let _ = write!(literal, "\\U{:08x}", u32::from(char));
            }
        }
    }
    literal.push('\'');
    literal
}

/// Whether `value` is one of these texts.
pub(crate) fn one_of(value: &str, texts: &[impl AsRef<str>]) -> String {
    if let [only] = texts {
        return format!("{value} == {}", text(only.as_ref()));
    }
    let texts: Vec<_> = texts.iter().map(|it| text(it.as_ref())).collect();
    format!("{value} in [{}]", texts.join(", "))
}

/// Whether the request is about one of these subresources.
pub(crate) fn subresource_is_one_of(subresources: &[&str]) -> String {
    one_of(SUBRESOURCE, subresources)
}

/// Whether a part of the request that may be missing has this value.
pub(crate) fn part_is(part: &str, value: &str) -> String {
    format!("has(request.{part}) && request.{part} == {}", text(value))
}

/// All of these hold.
pub(crate) fn all(conditions: &[String]) -> String {
    conditions.join(" && ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_literal() {
        assert_eq!(text("a-b.c:d"), "'a-b.c:d'");
        assert_eq!(text("' || true || '"), r"'\' || true || \''");
        assert_eq!(text(r"\"), r"'\\'");
        assert_eq!(text("a\nb\u{202e}"), r"'a\u000ab\u202e'");
        assert_eq!(text("\u{1f980}"), r"'\U0001f980'");
    }
}
