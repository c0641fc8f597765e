//! Versions of objects, as clients write them.

use crate::status::Refusal;

/// 0 is none. The error is Go's word for what cannot be read.
pub(crate) fn parse_version(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    // A sign is no digit to Go.
    let digits = text.bytes().all(|it| it.is_ascii_digit());
    match text.parse() {
        Ok(version) if digits => Ok(version),
        _ => {
            let why = if digits { "value out of range" } else { "invalid syntax" };
            Err(format!("strconv.ParseUint: parsing \"{text}\": {why}"))
        }
    }
}

/// The version that a read asks for; with what is wrong with it, otherwise.
pub(crate) fn asked_version(text: &str) -> Result<u64, String> {
    parse_version(text).map_err(|why| format!("resourceVersion: Invalid value: \"{text}\": {why}"))
}

/// A read of one object waits for a version that is still to come, which is not to be expected.
pub(crate) fn check_reachable(asked: u64, current: u64) -> Result<(), Refusal> {
    if asked > current { Err(Refusal::version_too_large(asked, current)) } else { Ok(()) }
}
