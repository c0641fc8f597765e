//! Other spellings of a path that some server may take for the same path.

use super::pick;
use fastrand::Rng;

/// Words that may have a meaning in any place.
const WORDS: [&str; 16] = [
    "",
    "",
    ".",
    "..",
    "%2e",
    "%2E%2e",
    "exec",
    "proxy",
    "watch",
    "namespaces",
    "status",
    "api",
    "*",
    ";x",
    "\\",
    "%2F",
];
const ODD_BYTES: [&str; 22] = [
    "%00",
    "%0A",
    "%0d%0a",
    "%20",
    "%25",
    "%2525",
    "%2f",
    "%2F",
    "%5C",
    "\\",
    ";",
    ";a=b",
    ":",
    "*",
    "%",
    "%zz",
    "%4",
    "\u{e9}",
    "\u{2215}",
    "%EF%BC%8F",
    "+",
    "#x",
];

/// Changes one segment.
pub fn misspell(rng: &mut Rng, path: &mut Vec<String>) {
    // The last segments matter most.
    let index = rng.usize(..path.len()).max(rng.usize(..path.len()));
    match rng.u8(..12) {
        0..3 => escape_one(rng, &mut path[index]),
        3 => path[index] = hex(&path[index]),
        4 => capital(rng, &mut path[index]),
        5 => insert(rng, &mut path[index]),
        6 => path.insert(index, pick(rng, &WORDS).to_owned()),
        7 => path[index] = pick(rng, &WORDS).to_owned(),
        8 => {
            path.push(String::new());
            if rng.u8(..4) == 0 {
                path.push(String::new());
            }
        }
        9 => path.insert(0, String::new()),
        10 => join(rng, path, index),
        _ => {
            let copy = path[rng.usize(..path.len())].clone();
            path.insert(index, copy);
        }
    }
}

/// Spells the whole segment in escapes.
fn hex(segment: &str) -> String {
    segment.bytes().fold(String::new(), |hex, byte| format!("{hex}%{byte:02x}"))
}

/// Spells a character as an escape, once or twice, in either case.
fn escape_one(rng: &mut Rng, segment: &mut String) {
    let Some((at, byte)) = at_random(rng, segment) else { return };
    let escaped = match rng.u8(..4) {
        0 => format!("%25{byte:02X}"),
        1 => format!("%{byte:02X}"),
        _ => format!("%{byte:02x}"),
    };
    segment.replace_range(at..=at, &escaped);
}

fn capital(rng: &mut Rng, segment: &mut String) {
    let Some((at, byte)) = at_random(rng, segment) else { return };
    segment.replace_range(at..=at, &char::from(byte).to_ascii_uppercase().to_string());
}

fn insert(rng: &mut Rng, segment: &mut String) {
    let at = rng.usize(..=segment.len());
    if segment.is_char_boundary(at) {
        segment.insert_str(at, pick(rng, &ODD_BYTES));
    }
}

/// Spells the slash behind a segment differently.
fn join(rng: &mut Rng, path: &mut Vec<String>, index: usize) {
    if index + 1 < path.len() {
        let next = path.remove(index + 1);
        path[index] += pick(rng, &["%2F", "%2f", "%252F", "\\", "%5c"]);
        path[index] += &next;
    }
}

/// One of its ASCII characters.
fn at_random(rng: &mut Rng, segment: &str) -> Option<(usize, u8)> {
    let at = rng.usize(..segment.len().max(1));
    segment.as_bytes().get(at).filter(|byte| byte.is_ascii()).map(|byte| (at, *byte))
}
