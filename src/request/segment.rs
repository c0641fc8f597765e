//! One segment of a path, and how it may be spelled.
//!
//! There are two grammars. An ordinary client's spelling is read for any request. An odd one, of which the server can still
//! make only one thing, is read for `GET` and `HEAD` alone.

use std::iter;

/// The segments of a path that are left.
pub(super) struct Segments<'a> {
    /// What follows the last slash passed; `None` once the last segment has been taken.
    rest: Option<&'a str>,
}

impl<'a> Segments<'a> {
    /// The segments of a path, if it starts with a slash.
    pub(super) fn of(path: &'a str) -> Option<Self> {
        path.strip_prefix('/').map(|rest| Self { rest: Some(rest) })
    }

    /// Nothing follows, not even a trailing slash.
    pub(super) fn is_used_up(&self) -> bool {
        self.rest.is_none()
    }

    /// Nothing follows but, at most, the trailing slash that the API documents for discovery paths.
    pub(super) fn at_end(&self) -> bool {
        self.rest.is_none_or(str::is_empty)
    }

    /// Passes the next segment if it is this one: cheaper than to classify its bytes.
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

    /// The next segment; an empty one when there is none.
    #[inline]
    pub(super) fn next(&mut self) -> Segment<'a> {
        let rest = self.rest.unwrap_or_default();
        let (mut all, mut length) = (u8::MAX, 0);
        for byte in rest.bytes() {
            if byte == b'/' {
                break;
            }
            all &= CLASSES[usize::from(byte)];
            length += 1;
        }
        self.rest = rest.get(length + 1..);
        Segment { text: rest.get(..length).unwrap_or_default(), all }
    }

    /// The next segment, as a structural one.
    #[inline]
    pub(super) fn structural(&mut self) -> Option<&'a str> {
        self.next().structural()
    }
}

/// A segment, with what its bytes are.
#[derive(Clone, Copy)]
pub(super) struct Segment<'a> {
    pub(super) text: &'a str,
    /// What every byte is.
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

    /// A segment that says what kind of thing is addressed.
    #[inline]
    pub(super) fn structural(self) -> Option<&'a str> {
        let (first, last) = (self.text.as_bytes().first()?, self.text.as_bytes().last()?);
        let edges = CLASSES[usize::from(*first)] & CLASSES[usize::from(*last)] & EDGE;
        (self.all & STRUCTURE != 0 && edges != 0).then_some(self.text)
    }

    /// A segment that says which one: a name, or a part of a backend's path.
    #[inline]
    pub(super) fn data(self) -> Option<&'a str> {
        let plain = !self.text.is_empty() && self.all & DATA != 0 && self.all & DOT == 0;
        (plain && (!self.is_escaped() || escaped_as_needed(self.text))).then_some(self.text)
    }

    /// A segment that says what kind of thing is addressed, in an odd spelling that still has one reading: the metrics
    /// APIs put names of metrics here. Go's clients escape some of their characters, as in `pubsub%7Cmessages`.
    #[cold]
    pub(super) fn odd_word(self) -> Option<&'a str> {
        let plain = self.is_printable() && self.all & DOT == 0;
        let is = |word: &&str| self.text.eq_ignore_ascii_case(word);
        let is_known = CONNECTIONS.iter().chain(&LEVELS).any(is);
        (plain && !is_known && (!self.is_escaped() || escapes_punctuation(self.text))).then_some(self.text)
    }

    /// A segment that says which one, in an odd spelling that still has one reading.
    #[cold]
    pub(super) fn odd_name(self) -> Option<&'a str> {
        let mut only_dots = true;
        let has_one_reading = |byte: Option<u8>| {
            only_dots &= byte == Some(b'.');
            byte.is_some_and(|byte| match byte {
                b' ' | 0x80.. => true,
                b'%' => false,
                _ => CLASSES[usize::from(byte)] & PRINTABLE != 0,
            })
        };
        let all = self.is_printable() && decoded(self.text).all(has_one_reading);
        (all && !only_dots && is_utf8(decoded(self.text).flatten())).then_some(self.text)
    }

    /// A segment behind the subresource of what is no proxy: an aggregated API may have more levels than the server, and
    /// a connection on a lower one.
    pub(super) fn is_odd_tail(self) -> bool {
        // Where such a path is passed on decoded, a query begins at these.
        let path = || decoded(self.text).flatten().take_while(|byte| !b"?#".contains(byte));
        let lower = || path().map(|byte| byte.to_ascii_lowercase());
        self.odd_name().is_some() && !CONNECTIONS.iter().any(|word| lower().eq(word.bytes()))
    }

    /// A part of a backend's path, with whatever escapes, unless a gateway could climb out of the backend's path by it.
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

    fn is_printable(&self) -> bool {
        !self.text.is_empty() && self.all & PRINTABLE != 0
    }
}

/// Words that change what the rest of the path means. With capitals they are no such words for the API server, but they
/// may be for what stands in front of it or behind it.
const LEVELS: [&str; 3] = ["namespaces", "watch", "proxy"];
/// The same, of subresources that can change something even when opened with `GET`.
const CONNECTIONS: [&str; 3] = ["exec", "attach", "portforward"];

/// The bytes as the server reads them; `None` for a broken escape.
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

/// Whether all that is escaped is punctuation with one reading. No letter hides in such a word, and no end of the path.
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

/// Some servers read longer forms of ASCII in what is no UTF-8: `%C0%AE` as a dot.
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

/// Whether the percent-encoded bytes are such as an encoder makes: upper-case digits, nothing that is a letter or a
/// digit, nothing that could not stand there as it is (so no slash), and no name of dots alone.
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
            if decoded.is_ascii_alphanumeric()
                || CLASSES[usize::from(decoded)] & (DATA | AS_IS) != DATA | AS_IS
            {
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

/// Lower-case letters, digits, `.`, `-`, and `_` (metrics APIs have it in the names of their resources).
const STRUCTURE: u8 = 1;
/// What of those may stand first and last.
const EDGE: u8 = 1 << 1;
/// `pchar` of RFC 3986 without `;`, which some servers take for the start of parameters.
const DATA: u8 = 1 << 2;
/// All but `%`.
const AS_IS: u8 = 1 << 3;
const DOT: u8 = 1 << 4;
/// Every visible ASCII character but a slash, a backslash and `;`.
const PRINTABLE: u8 = 1 << 5;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = u8::MIN;
    loop {
        classes[byte as usize] = class(byte);
        if byte == u8::MAX {
            break classes;
        }
        byte += 1;
    }
};

const fn class(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' | b'0'..=b'9' => STRUCTURE | EDGE | DATA | AS_IS | PRINTABLE,
        b'-' | b'_' => STRUCTURE | DATA | AS_IS | PRINTABLE,
        b'.' => STRUCTURE | DATA | AS_IS | DOT | PRINTABLE,
        b'A'..=b'Z' | b'!' | b'$' | b'&'..=b',' | b':' | b'=' | b'@' | b'~' => DATA | AS_IS | PRINTABLE,
        b'%' => DATA | PRINTABLE,
        b'/' | b'\\' | b';' => 0,
        b'!'..=b'~' => AS_IS | PRINTABLE,
        _ => 0,
    }
}
