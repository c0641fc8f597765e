//! What the API server reads in a query.

use percent_encoding::percent_decode_str;

/// Whether a read of a collection is a watch: the first `watch` decides, and all but `0` and `false` mean yes.
pub(super) fn asks_to_watch(query: Option<&str>) -> bool {
    pairs(query).flatten().find(|(key, _)| decodes_to(key, "watch")).is_some_and(|(_, value)| {
        let lower = || percent_decode_str(value).map(|byte| byte.to_ascii_lowercase());
        !lower().eq("0".bytes()) && !lower().eq("false".bytes())
    })
}

/// Whether there is a `dryRun` and each one is `All`. A pair that the server would drop spoils the whole query.
pub(super) fn asks_for_dry_run(query: Option<&str>) -> bool {
    let mut found = false;
    for pair in pairs(query) {
        let Some((key, value)) = pair else { return false };
        if decodes_to(key, "dryRun") {
            if !decodes_to(value, "All") {
                return false;
            }
            found = true;
        }
    }
    found
}

/// The pairs, still encoded; `None` stands for one that the server drops: it holds a `;` or a broken escape.
fn pairs(query: Option<&str>) -> impl Iterator<Item = Option<(&str, &str)>> {
    query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        (!pair.contains(';') && escapes_are_whole(pair)).then(|| pair.split_once('=').unwrap_or((pair, "")))
    })
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
