//! Reads a query as the API server does.

use percent_encoding::percent_decode_str;

/// Go's `net/url` reads no pair at all if a query has more pairs than this. It counts empty pairs too.
const MOST_PAIRS_OF_GO: usize = 10_000;

/// The most pairs in the query of a dry run. A write has at most six parameters. The number stays far below Go's
/// limit, even if an operator has lowered that.
const MOST_PAIRS: usize = 8;

/// The longest query of a dry run, in bytes. The longest field manager takes 384 of them.
const LONGEST: usize = 512;

/// Whether a read of a collection is a watch. The first `watch` decides: every value except `0` and `false` means
/// yes.
pub(super) fn asks_to_watch(query: Option<&str>) -> bool {
    let query = query.unwrap_or_default();
    let Some((_, value)) = pairs(query).find(|(key, _)| decodes_to(key, "watch")) else { return false };
    let lower = || percent_decode_str(value).map(|byte| byte.to_ascii_lowercase());
    let yes = !lower().eq("0".bytes()) && !lower().eq("false".bytes());
    yes && query.bytes().filter(|byte| *byte == b'&').count() < MOST_PAIRS_OF_GO
}

/// Whether the API server would ignore the whole query if it had one pair more.
pub(crate) fn has_no_room(query: &str) -> bool {
    query.len() >= MOST_PAIRS_OF_GO - 1 && query.split('&').count() >= MOST_PAIRS_OF_GO
}

/// Whether the query asks for a dry run: there is at least one `dryRun`, each is `All`, and a client's encoder could
/// have written the whole query.
///
/// In any other case the request counts as a write, since the server may read the query differently and carry the
/// write out.
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

/// Parameters of the API have only these characters in their names.
fn is_ordinary_key(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_ordinary_value(value: &str) -> bool {
    let as_is = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!*'()+:@/,%".contains(&byte);
    value.bytes().all(as_is) && escapes_are_whole(value)
}

/// The pairs that the server keeps, still encoded. The server drops a pair with a `;` or a broken escape.
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

/// Compares after decoding. A `+` is not decoded, since no word that is compared holds a space.
fn decodes_to(encoded: &str, word: &str) -> bool {
    percent_decode_str(encoded).eq(word.bytes())
}
