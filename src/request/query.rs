//! What the API server reads in a query.

use percent_encoding::percent_decode_str;

/// Go's `net/url` reads no pair at all of a query with more than these. It counts empty pairs too.
const MOST_PAIRS_OF_GO: usize = 10_000;

/// The most pairs in the query of a dry run. The API has six for a write; Go's limit is far away, also where an
/// operator has lowered it.
const MOST_PAIRS: usize = 8;

/// The longest query of a dry run, in bytes. The longest field manager takes up 384 of them.
const LONGEST: usize = 512;

/// Whether a read of a collection is a watch: the first `watch` decides, and all but `0` and `false` mean yes.
pub(super) fn asks_to_watch(query: Option<&str>) -> bool {
    let query = query.unwrap_or_default();
    let Some((_, value)) = pairs(query).find(|(key, _)| decodes_to(key, "watch")) else { return false };
    let lower = || percent_decode_str(value).map(|byte| byte.to_ascii_lowercase());
    let yes = !lower().eq("0".bytes()) && !lower().eq("false".bytes());
    yes && query.bytes().filter(|byte| *byte == b'&').count() < MOST_PAIRS_OF_GO
}

/// Whether each `dryRun` is `All`, there is one, and the whole query is as a client's encoder makes it.
///
/// Whatever is not so makes it a write: a query that the server reads differently is a dry run here and a write there.
pub(super) fn asks_for_dry_run(query: Option<&str>) -> bool {
    let Some(query) = query.filter(|query| query.len() <= LONGEST) else { return false };
    let mut found = false;
    // kube puts one separator in front of the first pair.
    for (index, pair) in query.strip_prefix('&').unwrap_or(query).split('&').enumerate() {
        let Some((key, value)) = pair.split_once('=') else { return false };
        let ordinary = index < MOST_PAIRS && is_ordinary_key(key) && is_ordinary_value(value);
        let dry_run = key.eq_ignore_ascii_case("dryRun");
        if !ordinary || dry_run && pair != "dryRun=All" {
            return false;
        }
        found |= dry_run;
    }
    found
}

/// No parameter of the API has anything else in its name.
fn is_ordinary_key(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_ordinary_value(value: &str) -> bool {
    let as_is = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!*'()+:@/,%".contains(&byte);
    value.bytes().all(as_is) && escapes_are_whole(value)
}

/// The pairs that the server keeps, still encoded. It drops a pair that holds a `;` or a broken escape.
fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query
        .split('&')
        .filter(|pair| !pair.contains(';') && escapes_are_whole(pair))
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

fn escapes_are_whole(text: &str) -> bool {
    text.split('%')
        .skip(1)
        .all(|rest| matches!(rest.as_bytes(), [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()))
}

/// None of the words looked for holds a space, so a `+` need not become one.
fn decodes_to(encoded: &str, word: &str) -> bool {
    percent_decode_str(encoded).eq(word.bytes())
}
