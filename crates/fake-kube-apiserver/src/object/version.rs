//! Resource versions, as clients write them.

use crate::status::Refusal;

/// Reads a version. Empty counts as 0. The error has Go's message.
pub(crate) fn parse_version(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    // Go does not accept a sign.
    let digits = text.bytes().all(|it| it.is_ascii_digit());
    match text.parse() {
        Ok(version) if digits => Ok(version),
        _ => {
            let why = if digits { "value out of range" } else { "invalid syntax" };
            Err(format!("strconv.ParseUint: parsing \"{text}\": {why}"))
        }
    }
}

/// Reads the version that a list, watch or get asks for.
pub(crate) fn asked_version(text: &str) -> Result<u64, String> {
    parse_version(text).map_err(|why| format!("resourceVersion: Invalid value: \"{text}\": {why}"))
}

/// Refuses a version that does not exist yet. The real server waits for it, and then refuses.
pub(crate) fn check_reachable(asked: u64, current: u64) -> Result<(), Refusal> {
    if asked > current { Err(Refusal::version_too_large(asked, current)) } else { Ok(()) }
}
