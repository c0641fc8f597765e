//! What one look at a path shows is what the parser says.

use super::{
    RequestInfo, Verb,
    path::{self, Connection, Kind, Parts, Prefix},
    scan::{self, EDGE, STRUCTURE, classes_of},
};
use http::{Method, Uri};
use proptest::{collection::vec, prelude::*, sample::select};

/// Starts and segments that change the meaning of a path, and some that look like them.
const STARTS: [&str; 8] = ["/api/v1", "/apis", "/api", "/api/v2", "/apis/apps/v1", "", "/version", "/API/v1"];
const WORDS: [&str; 22] = [
    "exec",
    "attach",
    "portforward",
    "proxy",
    "watch",
    "namespaces",
    "status",
    "finalize",
    "apps",
    "v1",
    "pods",
    "web-0",
    "exe",
    "Exec",
    "at-tach",
    "port",
    "a--b",
    "-",
    "..",
    "",
    "a_b.c",
    "x%79",
];

fn segment() -> impl Strategy<Value = String> {
    prop_oneof![3 => select(&WORDS[..]).prop_map(str::to_owned), 1 => "[a-z0-9._%A-Z-]{0,20}"]
}

fn some_path() -> impl Strategy<Value = String> {
    (select(&STARTS[..]), vec(segment(), 0..9))
        .prop_map(|(start, segments)| segments.iter().fold(start.to_owned(), |path, next| path + "/" + next))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) })]

    #[test]
    fn plain_path_parses_as_a_read(path in some_path()) {
        let parts = Parts::of(&path);
        let reads = parts.kind != Kind::Unparsed
            && parts.prefix != Prefix::Proxy
            && parts.connection == Connection::None;
        prop_assert!(reads || !path::is_plain(&path), "{}: {:?}", path, parts);
    }
}

#[test]
fn usual_reads_are_plain() {
    for path in [
        "/api/v1/namespaces/shop/pods",
        "/api/v1/namespaces/shop/configmaps/web-config",
        "/apis/apps/v1/namespaces/default/deployments/web",
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/operator",
        "/apis/monitoring.coreos.com/v1",
    ] {
        assert!(path::is_plain(path), "{path}");
        let uri = path.parse().unwrap();
        let needs_no_parse = |method, upgrade| RequestInfo::from_parts(method, &uri, upgrade).is_plain_read();
        assert!(needs_no_parse(&Method::GET, false) && needs_no_parse(&Method::HEAD, false), "{path}");
        assert!(!needs_no_parse(&Method::PUT, false) && !needs_no_parse(&Method::GET, true), "{path}");
    }
    for path in ["/version/of/this/cluster", "/api/v2/namespaces/shop/pods", "/apis/example.com/v1/watch"] {
        assert!(!path::is_plain(path), "{path}");
    }
}

/// Each byte in each place of paths of all lengths around the steps of the look.
#[test]
fn look_finds_each_byte_that_needs_a_parse() {
    let is_edge = |byte: u8| classes_of(byte) & EDGE != 0;
    for length in [1, 16, 17, 18, 32, 33, 34, 35, 49, 50] {
        for at in 0..length {
            for byte in 0..=u8::MAX {
                let mut path = vec![b'a'; length];
                path[at] = byte;
                let known = byte == b'/' || classes_of(byte) & STRUCTURE != 0;
                let plain = length > 16 && known && (is_edge(byte) || at + 1 < length);
                assert_eq!(scan::is_plain(&path), plain, "{}", path.escape_ascii());
            }
        }
    }
}

/// Each of them in each place.
#[test]
fn look_finds_each_word_and_each_pair_of_separators() {
    let words = ["exec", "attach", "portforward", "proxy", "//", "/.", "-/", "..", "--", "_/"];
    for (length, word) in [17, 18, 33, 34, 50].into_iter().flat_map(|length| words.map(|word| (length, word)))
    {
        for at in 0..=length - word.len() {
            let mut path = vec![b'a'; length];
            path[at..at + word.len()].copy_from_slice(word.as_bytes());
            assert!(!scan::is_plain(&path), "{}", path.escape_ascii());
        }
    }
}

#[test]
fn plain_get_of_a_connection_is_never_a_read() -> Result<(), http::uri::InvalidUri> {
    for word in ["exec", "attach", "portforward"] {
        let uri: Uri = format!("/api/v1/namespaces/shop/pods/web/{word}").parse()?;
        let asked = RequestInfo::from_parts(&Method::GET, &uri, false);
        assert!(!asked.is_read() && asked.verb() == Verb::Connect, "{word}");
    }
    Ok(())
}
