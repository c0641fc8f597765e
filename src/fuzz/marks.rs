//! What candidates write into the lease for one another.

pub(super) use crate::election::fuzz::marks_body as body;

/// Lines: the handover, the holder's key, the standbys, the holder's pod.
pub(super) const SEEDS: &[&str] = &[
    "from 3 to 4\nstable\n[\"a\",[\"b\",\"low\"],\"c\"]\n",
    "from 3 to 4, done\n\n[]\n{\"holder\":\"holder\",\"term\":4,\"pod\":\"web-0\",\"uid\":\"0b54-e6ce\",\"container\":\"main\"}",
    "from 18446744073709551615 to 4\nhigh\n[\"holder\",\"a\",\"a\",\"b\",\"c\",\"d\"]\n{\"holder\":\"holder\",\"term\":4,\"pod\":\"web-0\",\"uid\":\"u\"}",
    "from +3 to 04\nme\n[[\"me\",\"mid\"],7,null]\n{\"holder\":\"other\",\"term\":3}",
];

pub(super) const WORDS: &[&str] = &[
    "\n",
    "from ",
    " to ",
    ", done",
    "0",
    "3",
    "4",
    "+",
    "-1",
    "18446744073709551615",
    "low",
    "mid",
    "high",
    "me",
    "holder",
    "[",
    "]",
    "\"",
    "\",\"",
    ",",
    "\"a\"",
    "[\"b\",\"low\"]",
    "\\u0000",
    "\\\"",
    " ",
    "\u{a0}",
    "é",
    "{",
    "}",
    "\"holder\":",
    "\"term\":",
    "\"pod\":",
    "\"uid\":",
    "\"container\":",
    "null",
];
