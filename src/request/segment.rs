//! One segment of a path, and its allowed spellings.
//!
//! There are two grammars. The spelling of an ordinary client is accepted for any request. An odd spelling is
//! accepted for `GET` and `HEAD` only, and only if it has one meaning.

use super::byte_class::{AS_IS, DATA, EDGE, PRINTABLE, STRUCTURE, classes_of};
use std::iter;

/// The remaining segments of a path.
pub(super) struct Segments<'a> {
    /// The text after the last slash that was passed; `None` after the last segment.
    rest: Option<&'a str>,
}

impl<'a> Segments<'a> {
    /// The segments of a path. None if it does not start with a slash.
    pub(super) fn of(path: &'a str) -> Option<Self> {
        path.strip_prefix('/').map(|rest| Self { rest: Some(rest) })
    }

    /// Whether no segment is left, not even a trailing slash.
    pub(super) fn is_used_up(&self) -> bool {
        self.rest.is_none()
    }

    /// Whether no segment is left, except for the trailing slash that the API documents for discovery paths.
    pub(super) fn at_end(&self) -> bool {
        self.rest.is_none_or(str::is_empty)
    }

    /// Passes the next segment if it equals `segment`. This is cheaper than classifying its bytes.
    #[inline]
    pub(super) fn skip(&mut self, segment: &str) -> bool {
        let rest = self.rest.and_then(|rest| rest.strip_prefix(segment));
        match rest.map(|rest| (rest, rest.strip_prefix('/'))) {
            Some(("", _)) => self.rest = None,
            Some((_, Some(rest))) => self.rest = Some(rest),
            _ => return false,
        }
        true
    }

    /// The next segment; empty if there is none.
    #[inline]
    pub(super) fn next(&mut self) -> Segment<'a> {
        let rest = self.rest.unwrap_or_default();
        // One look at each byte: every read pays for this loop.
        let (mut all, mut length) = (u8::MAX, 0);
        for byte in rest.bytes().take_while(|byte| *byte != b'/') {
            all &= classes_of(byte);
            length += 1;
        }
        self.rest = rest.get(length + 1..);
        Segment { text: rest.get(..length).unwrap_or_default(), all }
    }

    /// The next segment, if it is structural.
    #[inline]
    pub(super) fn structural(&mut self) -> Option<&'a str> {
        self.next().structural()
    }
}

/// A segment, with the classes of its bytes.
#[derive(Clone, Copy)]
pub(super) struct Segment<'a> {
    pub(super) text: &'a str,
    /// The classes that every byte belongs to.
    all: u8,
}

impl<'a> Segment<'a> {
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let mut segments = Segments { rest: Some(text) };
        Some(segments.next()).filter(|_| segments.is_used_up())
    }

    pub(super) fn is_escaped(&self) -> bool {
        self.all & AS_IS == 0
    }

    /// The segment, if it can say what kind of object is addressed.
    #[inline]
    pub(super) fn structural(self) -> Option<&'a str> {
        let (first, last) = (self.text.as_bytes().first()?, self.text.as_bytes().last()?);
        let edges = classes_of(*first) & classes_of(*last) & EDGE;
        (self.all & STRUCTURE != 0 && edges != 0).then_some(self.text)
    }

    /// The segment, if it can say which object is addressed: a name, or a part of a backend's path.
    #[inline]
    pub(super) fn data(self) -> Option<&'a str> {
        let plain = !self.text.is_empty() && self.all & DATA != 0 && !self.is_only_dots();
        (plain && (!self.is_escaped() || escaped_as_needed(self.text))).then_some(self.text)
    }

    /// The segment, if it says what kind of object is addressed in an odd spelling with one meaning. Metrics APIs put
    /// names of metrics here, and Go's clients escape some characters in them: `pubsub%7Cmessages`.
    #[cold]
    pub(super) fn odd_word(self) -> Option<&'a str> {
        let plain = self.is_printable() && !self.is_only_dots();
        let is = |word: &&str| self.text.eq_ignore_ascii_case(word);
        let is_known = CONNECTIONS.iter().chain(&LEVELS).any(is);
        (plain && !is_known && (!self.is_escaped() || escapes_punctuation(self.text))).then_some(self.text)
    }

    /// The segment, if it says which object is addressed in an odd spelling with one meaning.
    #[cold]
    pub(super) fn odd_name(self) -> Option<&'a str> {
        let mut only_dots = true;
        let has_one_reading = |byte: Option<u8>| {
            only_dots &= byte == Some(b'.');
            byte.is_some_and(|byte| match byte {
                b' ' | 0x80.. => true,
                b'%' => false,
                _ => classes_of(byte) & PRINTABLE != 0,
            })
        };
        let all = self.is_printable() && decoded(self.text).all(has_one_reading);
        (all && !only_dots && is_utf8(decoded(self.text).flatten())).then_some(self.text)
    }

    /// Whether the segment may follow a subresource other than a proxy. An aggregated API may have more levels than
    /// the server, so no such level may be a connection.
    pub(super) fn is_odd_tail(self) -> bool {
        // A server that passes the path on decoded begins a query at these bytes.
        let path = || decoded(self.text).flatten().take_while(|byte| !b"?#".contains(byte));
        let lower = || path().map(|byte| byte.to_ascii_lowercase());
        self.odd_name().is_some() && !CONNECTIONS.iter().any(|word| lower().eq(word.bytes()))
    }

    /// Whether the segment may be part of a backend's path. Any escapes are allowed, unless a gateway could leave the
    /// backend's path through them.
    #[cold]
    pub(super) fn is_odd_backend_path(self) -> bool {
        let (mut begins, mut dots) = (true, false);
        let climbs = |byte: Option<u8>| match byte {
            None => true,
            Some(b'/' | b'\\' | b';') if dots => true,
            Some(b'/' | b'\\') => {
                (begins, dots) = (true, false);
                false
            }
            Some(byte) => {
                dots = byte == b'.' && (begins || dots);
                begins = false;
                false
            }
        };
        self.is_printable() && !decoded(self.text).chain([Some(b'/')]).any(climbs)
    }

    fn is_only_dots(&self) -> bool {
        self.text.bytes().all(|byte| byte == b'.')
    }

    fn is_printable(&self) -> bool {
        !self.text.is_empty() && self.all & PRINTABLE != 0
    }
}

/// Words that change the meaning of the rest of the path. With capitals the API server reads them as other words, but
/// a gateway in front of it or a backend may not.
const LEVELS: [&str; 3] = ["namespaces", "watch", "proxy"];
/// Subresources that can change something even with `GET`. A spelling with capitals is refused too.
const CONNECTIONS: [&str; 3] = ["exec", "attach", "portforward"];

/// The bytes as the server reads them. `None` stands for a broken escape.
fn decoded(text: &str) -> impl Iterator<Item = Option<u8>> {
    let mut bytes = text.bytes();
    iter::from_fn(move || {
        let byte = bytes.next()?;
        if byte != b'%' {
            return Some(Some(byte));
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let (high, low) = (digit(), digit());
        Some(high.zip(low).and_then(|(high, low)| u8::try_from(high << 4 | low).ok()))
    })
}

/// Whether every escape is harmless punctuation. Such a word hides no letter and no end of the path.
fn escapes_punctuation(text: &str) -> bool {
    let is_harmless = |byte: u8| byte.is_ascii_punctuation() && !b"%./;?#\\".contains(&byte);
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        rest = rest.get(at..).unwrap_or_default();
        if !decoded(rest).next().flatten().is_some_and(is_harmless) {
            return false;
        }
        rest = rest.get(3..).unwrap_or_default();
    }
    true
}

/// Whether the bytes are UTF-8. Some servers read overlong forms as ASCII: `%C0%AE` as a dot.
fn is_utf8(mut bytes: impl Iterator<Item = u8>) -> bool {
    while let Some(first) = bytes.next() {
        let mut character = [first, 0, 0, 0];
        let length = if first.is_ascii() { 1 } else { first.leading_ones() as usize };
        let Some(character) = character.get_mut(..length) else { return false };
        character.iter_mut().skip(1).for_each(|byte| *byte = bytes.next().unwrap_or_default());
        if str::from_utf8(character).is_err() {
            return false;
        }
    }
    true
}

/// Whether an encoder could have written the escapes: with upper-case digits, and only for bytes that need an escape
/// (so no letter, digit or slash). A name of dots alone is refused.
fn escaped_as_needed(text: &str) -> bool {
    let mut bytes = text.bytes();
    let mut only_dots = true;
    while let Some(byte) = bytes.next() {
        let mut decoded = byte;
        if byte == b'%' {
            let (Some(high), Some(low)) = (bytes.next().and_then(hex), bytes.next().and_then(hex)) else {
                return false;
            };
            decoded = high << 4 | low;
            if decoded.is_ascii_alphanumeric() || classes_of(decoded) & (DATA | AS_IS) != DATA | AS_IS {
                return false;
            }
        }
        only_dots &= decoded == b'.';
    }
    !only_dots
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
