//! Bytes that are nearly HTTP, in pieces.

use crate::{
    callers::{EXEC, MAPS},
    upstream::LEASE,
};
use proptest::{collection::vec, option, prelude::*, sample::Index, sample::select};
use std::fmt;

/// What a caller sends.
#[derive(Clone)]
pub(crate) struct Stream {
    bytes: Vec<u8>,
    cuts: Vec<Index>,
    pub(crate) end: End,
}

/// How the caller ends it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    /// It sends no more, and reads the answers.
    Listen,
    /// It closes the connection.
    Drop,
}

const METHODS: [&str; 7] = ["GET", "GET", "GET", "POST", "DELETE", "PUT", "PATCH"];
const ODD_METHODS: [&str; 9] = ["HEAD", "OPTIONS", "CONNECT", "TRACE", "get", "PRI", "", "G T", "\0"];
const ODD_VERSIONS: [&str; 5] = [" HTTP/1.0", " HTTP/2.0", " HTTP/0.9", "", " HTTP/1.1 x"];
/// For some servers, a line feed alone ends a line too.
const ODD_LINE_ENDS: [&str; 3] = ["\n", "\r", "\r\r\n"];

/// One of the plain ones; once in `rarity` times an odd one.
fn mostly(
    plain: &'static [&'static str],
    odd: &'static [&'static str],
    rarity: u32,
) -> impl Strategy<Value = &'static str> {
    prop_oneof![rarity - 1 => select(plain), 1 => select(odd)]
}

fn line_end() -> impl Strategy<Value = &'static str> {
    mostly(&["\r\n"], &ODD_LINE_ENDS, 40)
}

const HEADERS: [&str; 14] = [
    "content-length: {LENGTH}",
    "content-length: {LENGTH}",
    "content-length: {LENGTH}",
    "transfer-encoding: chunked",
    "transfer-encoding: chunked",
    "content-type: application/json",
    "connection: close",
    "connection: keep-alive",
    "connection: upgrade",
    "expect: 100-continue",
    "te: trailers",
    "trailer: x-http-method-override",
    "x-http-method-override: DELETE",
    "upgrade: websocket",
];

const ODD_HEADERS: [&str; 29] = [
    "content-length: 0",
    "content-length: 5",
    "content-length: +5",
    "content-length: 5, 5",
    "content-length: 0x5",
    "content-length: -1",
    "content-length: 18446744073709551616",
    "content-length:{LENGTH} ",
    "content-length : {LENGTH}",
    "Transfer-Encoding: CHUNKED",
    "transfer-encoding: chunked, chunked",
    "transfer-encoding: gzip, chunked",
    "transfer-encoding: identity",
    "transfer-encoding: xchunked",
    "transfer-encoding:\u{b}chunked",
    "transfer-encoding : chunked",
    "x: y\r\n transfer-encoding: chunked",
    "x: y\r\n\tcontent-length: {LENGTH}",
    "connection: content-length",
    "connection: transfer-encoding, host",
    "upgrade: h2c\r\nconnection: upgrade, http2-settings\r\nhttp2-settings: AAMAAABkAAQAAP__",
    "host: localhost",
    "host: elsewhere",
    "origin: http://elsewhere",
    "no colon",
    ": no name",
    "x: \0",
    "x: \rdelete",
    "{LONG}",
];

/// What follows a head.
const BODIES: [&str; 17] = [
    "",
    "",
    "",
    "",
    "",
    "",
    "{BODY}",
    "{BODY}",
    "{CHUNK}0\r\n\r\n",
    "{CHUNK}0\r\nx-http-method-override: DELETE\r\n\r\n",
    "{CHUNK}zz\r\n",
    "0\r\n\r\n{WRITE}",
    "00000000000000000\r\n\r\n{WRITE}",
    "10000000000000000\r\n\r\n{WRITE}",
    "0;x=\n{WRITE}",
    "-1\r\n{WRITE}",
    "{WRITE}",
];

fn target() -> impl Strategy<Value = String> {
    let targets = [
        "/version".to_owned(),
        "/version".to_owned(),
        MAPS.to_owned(),
        MAPS.to_owned(),
        MAPS.to_owned(),
        format!("{MAPS}/x"),
        format!("{MAPS}?dryRun=All"),
        format!("{MAPS}?watch=1"),
        format!("http://localhost{MAPS}"),
        format!("http://elsewhere{MAPS}"),
        format!("//elsewhere{MAPS}"),
        format!("{MAPS}#/x"),
        format!("/test/x\t{MAPS}"),
        EXEC.to_owned(),
        EXEC.replace("/exec", "/%65xec"),
        LEASE.to_owned(),
        "/test/echo".to_owned(),
        "/test/x".to_owned(),
        "/test/x/../../api/v1".to_owned(),
        "*".to_owned(),
        "localhost:443".to_owned(),
        String::new(),
        format!("/{}", "x".repeat(40_000)),
    ];
    // Enough reads of it are well-formed that each run sees its 404.
    prop_oneof![2 => select(targets.to_vec()), 1 => Just("/nowhere".to_owned())]
}

/// One message: its head, mostly with a host, and what follows.
fn message() -> impl Strategy<Value = String> {
    let version = mostly(&[" HTTP/1.1"], &ODD_VERSIONS, 15);
    let head = (mostly(&METHODS, &ODD_METHODS, 6), target(), version, line_end());
    let headers = vec((mostly(&HEADERS, &ODD_HEADERS, 4), line_end()), 0..3);
    (head, 0..15_u8, headers, select(&BODIES[..])).prop_map(
        |((method, target, version, end), host, headers, body)| {
            let host = if host == 0 { String::new() } else { format!("host: localhost{end}") };
            let headers =
                headers.iter().map(|(header, end)| [*header, *end].concat()).collect::<Vec<_>>().concat();
            filled(&format!("{method} {target}{version}{end}{host}{headers}{end}{body}"))
        },
    )
}

fn filled(text: &str) -> String {
    let body = r#"{"metadata":{"name":"smuggled"}}"#;
    let write = format!(
        "POST {MAPS} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let length = if text.contains("{WRITE}") { write.len() } else { body.len() };
    let long = format!("x: {}", "y".repeat(100_000));
    let chunk = format!("{:x}\r\n{body}\r\n", body.len());
    let parts = [
        ("{LENGTH}", length.to_string()),
        ("{CHUNK}", chunk),
        ("{BODY}", body.to_owned()),
        ("{WRITE}", write),
        ("{LONG}", long),
    ];
    parts.iter().fold(text.to_owned(), |text, (part, with)| text.replace(part, with))
}

/// Bytes without a message in them.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec()),
        Just(b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03".to_vec()),
        Just(b"\r\n\r\n".to_vec()),
        vec(any::<u8>(), 0..200),
    ]
}

/// A byte that is put in, or takes the place of another one, or is taken away.
type Slip = (Index, Option<u8>, bool);

pub(crate) fn stream() -> impl Strategy<Value = Stream> {
    let part = prop_oneof![9 => message().prop_map(String::into_bytes), 1 => noise()];
    let slips = vec((any::<Index>(), option::of(any::<u8>()), any::<bool>()), 0..3);
    let slips = prop_oneof![4 => Just(Vec::new()), 1 => slips];
    let end = prop_oneof![4 => Just(End::Listen), 1 => Just(End::Drop)];
    (vec(part, 1..4), slips, vec(any::<Index>(), 0..4), end).prop_map(|(parts, slips, cuts, end)| Stream {
        bytes: slipped(parts.concat(), slips),
        cuts,
        end,
    })
}

fn slipped(mut bytes: Vec<u8>, slips: Vec<Slip>) -> Vec<u8> {
    for (at, byte, adds) in slips {
        let at = at.index(bytes.len() + 1);
        let until = if adds { at } else { (at + 1).min(bytes.len()) };
        bytes.splice(at..until, byte);
    }
    bytes
}

impl Stream {
    pub(crate) fn pieces(&self) -> Vec<&[u8]> {
        let mut cuts: Vec<_> = self.cuts.iter().map(|cut| cut.index(self.bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let (mut pieces, mut rest, mut before) = (Vec::new(), &*self.bytes, 0);
        for cut in cuts {
            let (piece, after) = rest.split_at(cut - before);
            pieces.push(piece);
            (rest, before) = (after, cut);
        }
        pieces.push(rest);
        pieces
    }
}

/// Long runs are cut short.
impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: Vec<_> = self
            .pieces()
            .iter()
            .map(|piece| piece.escape_ascii().to_string())
            .map(|piece| piece.replace(&"y".repeat(1000), "").replace(&"x".repeat(1000), ""))
            .collect();
        write!(f, "{text:?}, then {:?}", self.end)
    }
}
