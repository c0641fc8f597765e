//! One segment of a path, and how it may be spelled.

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

    /// Whether all that is left is data; a backend's path may end in a slash.
    pub(super) fn all_data(&mut self) -> bool {
        while !self.at_end() {
            if self.next().data().is_none() {
                return false;
            }
        }
        true
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
        b'a'..=b'z' | b'0'..=b'9' => STRUCTURE | EDGE | DATA | AS_IS,
        b'-' | b'_' => STRUCTURE | DATA | AS_IS,
        b'.' => STRUCTURE | DATA | AS_IS | DOT,
        b'A'..=b'Z' | b'!' | b'$' | b'&'..=b',' | b':' | b'=' | b'@' | b'~' => DATA | AS_IS,
        b'%' => DATA,
        _ => 0,
    }
}
