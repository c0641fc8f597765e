//! The classes that the bytes of a path belong to.

/// Lower-case letters, digits, `.`, `-`, and `_` (metrics APIs use it in resource names).
pub(super) const STRUCTURE: u8 = 1;
/// The bytes of [`STRUCTURE`] that may come first and last.
pub(super) const EDGE: u8 = 1 << 1;
/// `pchar` of RFC 3986 without `;`, since some servers start parameters there.
pub(super) const DATA: u8 = 1 << 2;
/// What stands for itself: every byte of [`PRINTABLE`] except `%`.
pub(super) const AS_IS: u8 = 1 << 3;
/// Every visible ASCII character except a slash, a backslash and `;`.
pub(super) const PRINTABLE: u8 = 1 << 4;

/// The classes of a byte that an ordinary path's segments may hold everywhere but at their edges.
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
