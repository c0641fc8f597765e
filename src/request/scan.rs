//! The bytes of a path, many at a time: to which classes they belong, and where a segment ends.

/// Lower-case letters, digits, `.`, `-`, and `_` (metrics APIs use it in resource names).
pub(super) const STRUCTURE: u8 = 1;
/// The bytes of [`STRUCTURE`] that may come first and last.
pub(super) const EDGE: u8 = 1 << 1;
/// `pchar` of RFC 3986 without `;`, since some servers start parameters there.
pub(super) const DATA: u8 = 1 << 2;
/// All bytes except `%`.
pub(super) const AS_IS: u8 = 1 << 3;
/// Every visible ASCII character except a slash, a backslash and `;`.
pub(super) const PRINTABLE: u8 = 1 << 4;

/// The classes that each byte of an ordinary path's segments belongs to.
const ORDINARY: u8 = STRUCTURE | DATA | AS_IS | PRINTABLE;

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
        b'a'..=b'z' | b'0'..=b'9' => ORDINARY | EDGE,
        b'-' | b'_' | b'.' => ORDINARY,
        b'A'..=b'Z' | b'!' | b'$' | b'&'..=b',' | b':' | b'=' | b'@' | b'~' => DATA | AS_IS | PRINTABLE,
        b'%' => DATA | PRINTABLE,
        b'/' | b'\\' | b';' => 0,
        b'!'..=b'~' => AS_IS | PRINTABLE,
        _ => 0,
    }
}

/// The classes of a byte.
pub(super) fn classes_of(byte: u8) -> u8 {
    CLASSES[usize::from(byte)]
}

/// Says of each segment of one path which classes all of its bytes belong to.
#[derive(Clone, Copy)]
pub(super) struct Classes {
    /// No byte of the path needs a closer look: all are slashes, or of [`STRUCTURE`].
    ordinary: bool,
}

impl Classes {
    #[inline]
    pub(super) fn of(path: &str) -> Self {
        Self { ordinary: is_ordinary(path.as_bytes()) }
    }

    #[inline]
    pub(super) fn of_segment(self, segment: &str) -> u8 {
        if self.ordinary { ORDINARY } else { looked_up(segment) }
    }
}

fn looked_up(segment: &str) -> u8 {
    segment.bytes().fold(u8::MAX, |all, byte| all & classes_of(byte))
}

/// How many bytes one step takes. The compiler makes vector instructions of a loop over so many.
const STEP: usize = 16;

#[inline]
fn is_ordinary(path: &[u8]) -> bool {
    let is = |byte: u8| byte.wrapping_sub(b'a') < 26 || matches!(byte, b'-'..=b'9') || byte == b'_';
    // Every byte is looked at: an early return would prevent vector instructions.
    let all = |bytes: &[u8]| bytes.iter().fold(true, |all, byte| all & is(*byte));
    match path.last_chunk::<STEP>() {
        // The last step may look at some bytes again.
        Some(last) => path.as_chunks::<STEP>().0.iter().fold(all(last), |before, step| before & all(step)),
        None => all(path),
    }
}

/// Whether one look at the bytes shows that a path's segments are all structural, and that none of them is a
/// connection. If it returns false, that may still be so.
///
/// - Every byte is a slash or of [`STRUCTURE`]. The last byte is of [`EDGE`], and of two neighbours at least one is.
/// - There are no two letters from the middle of a connection: e**xe**c, a**tt**ach, por**tf**orward, pro**xy**.
#[expect(
    clippy::needless_bitwise_bool,
    reason = "a lazy operator branches, which prevents vector instructions"
)]
#[inline]
pub(super) fn is_plain(path: &[u8]) -> bool {
    let is_edge = |byte: u8| byte.wrapping_sub(b'a') < 26 || byte.wrapping_sub(b'0') < 10;
    let passes = |(byte, next): (&u8, &u8)| {
        let (edge, next_edge) = (is_edge(*byte), is_edge(*next));
        let known = edge | byte.wrapping_sub(b'-').le(&2) | (*byte == b'_');
        let connects = (*byte == b'x') & ((*next == b'e') | (*next == b'y'))
            | (*byte == b't') & ((*next == b't') | (*next == b'f'));
        known & (edge | next_edge) & !connects
    };
    // Within a step, every byte is looked at, as above.
    let all = |bytes: &[u8; STEP + 1]| {
        bytes[..STEP].iter().zip(&bytes[1..]).fold(true, |all, pair| all & passes(pair))
    };
    let (Some(last), Some(end)) = (path.last_chunk(), path.last()) else { return false };
    let mut rest = path;
    while let Some(step) = rest.first_chunk() {
        if !all(step) {
            return false;
        }
        rest = &rest[STEP..];
    }
    all(last) && is_edge(*end)
}

/// The number of bytes before the next slash, or before the end.
#[inline]
pub(super) fn length_of_segment(rest: &str) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let (words, last) = rest.as_bytes().as_chunks::<8>();
    let mut before = 0;
    for word in words {
        // A slash becomes zero. The lowest zero byte is the first one that borrows.
        let word = u64::from_le_bytes(*word) ^ (EACH * 0x2f);
        let zeros = word.wrapping_sub(EACH) & !word & (EACH << 7);
        if zeros != 0 {
            return before + zeros.trailing_zeros() as usize / 8;
        }
        before += 8;
    }
    before + last.iter().take_while(|byte| **byte != b'/').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of ordinary bytes with `byte` in each place, for paths of all lengths around one step.
    fn paths_with(byte: char) -> impl Iterator<Item = (String, usize)> {
        let with = move |length: usize, at: usize| {
            let path = (0..length).map(|index| if index == at { byte } else { 'a' });
            (path.collect(), at)
        };
        (1..=2 * STEP + 3).flat_map(move |length| (0..length).map(move |at| with(length, at)))
    }

    #[test]
    fn path_is_ordinary_if_each_byte_is() {
        for byte in 0..=u8::MAX {
            let ordinary = byte == b'/' || classes_of(byte) & STRUCTURE != 0;
            for (path, _) in paths_with(char::from(byte)).filter(|(path, _)| path.is_ascii()) {
                assert_eq!(is_ordinary(path.as_bytes()), ordinary, "{path:?}");
            }
        }
        assert!(is_ordinary(b"") && !is_ordinary("ä".as_bytes()));
    }

    #[test]
    fn classes_of_an_ordinary_path_are_those_of_its_bytes() {
        for text in ["a", "my-name.x_0", "0", "..", "-"] {
            assert_eq!(Classes::of(text).of_segment(text), looked_up(text) & ORDINARY, "{text}");
        }
    }

    #[test]
    fn segment_ends_at_first_slash() {
        for (path, at) in paths_with('/') {
            assert_eq!(length_of_segment(&path), at, "{path:?}");
            assert_eq!(length_of_segment(&format!("{path}/")), at, "{path:?}");
        }
        // Neighbours of the slash in the table, and the byte that a borrow could make a zero of.
        for near in ["aaaaaaa.0/", "0000000000.", ".......0/", "/0", "\u{7f}\u{30}/"] {
            assert_eq!(length_of_segment(near), near.find('/').unwrap_or(near.len()), "{near:?}");
        }
    }
}
