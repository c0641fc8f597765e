//! Whether a request asks to leave HTTP.

use http::{HeaderMap, header::CONNECTION};

/// The API server's proxies look for the word anywhere in any `Connection` header and do not ask for an `Upgrade`
/// header; an `Upgrade` header alone does nothing.
pub(super) fn is_asked_for(headers: &HeaderMap) -> bool {
    const WORD: &[u8] = b"upgrade";
    headers
        .get_all(CONNECTION)
        .iter()
        .any(|value| value.as_bytes().windows(WORD.len()).any(|window| window.eq_ignore_ascii_case(WORD)))
}
