//! Media types: of bodies, and of the answers that a client accepts.

use crate::request::RequestInfo;
use crate::status::Refusal;

/// The type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Apply,
}

/// The media types that a real server names. This server has JSON alone.
const KINDS: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const JSON: &str = "application/json";

const PATCHES: [(&str, PatchKind); 4] = [
    ("application/json-patch+json", PatchKind::Json),
    ("application/merge-patch+json", PatchKind::Merge),
    ("application/strategic-merge-patch+json", PatchKind::Merge),
    ("application/apply-patch+yaml", PatchKind::Apply),
];

/// Checks that the body of a POST, PUT or DELETE is JSON. Without a content type it counts as JSON.
pub(crate) fn json_body(info: &RequestInfo) -> Result<(), Refusal> {
    let media_type = info.content_type.split(';').next().unwrap_or_default().trim();
    if info.content_type.is_empty() || media_type.eq_ignore_ascii_case(JSON) {
        return Ok(());
    }
    Err(Refusal::unsupported_media_type(KINDS))
}

/// Reads the type of a patch. Like the real server, refuses a list of types with another message.
pub(crate) fn patch_kind(info: &RequestInfo) -> Result<PatchKind, Refusal> {
    let named = |it: &str| PATCHES.iter().find(|(name, _)| *name == it).map(|(_, kind)| *kind);
    let whole = info.content_type.split(';').next().unwrap_or_default();
    if let Some(kind) = named(whole) {
        return Ok(kind);
    }
    if info.content_type.split(',').any(|it| named(it.split(';').next().unwrap_or_default().trim()).is_some())
    {
        return Err(Refusal::unsupported_media_type(&PATCHES.map(|(name, _)| name).join(", ")));
    }
    Err(Refusal::unknown_media_type())
}

/// Checks that the client accepts JSON. A client that asks for a Table or for partial metadata gets the whole object.
pub(crate) fn accepts_json(info: &RequestInfo) -> Result<(), Refusal> {
    let accept = if info.accept.trim().is_empty() { "*/*" } else { info.accept.as_str() };
    let clauses = || accept.split(',').map(|it| it.split(';').map(str::trim));
    let types: Vec<&str> = clauses().filter_map(|mut it| it.next()).collect();
    if !types.iter().any(|it| *it == "*/*" || KINDS.split(", ").any(|known| known == *it)) {
        let streams = if matches!(info.verb, "list" | "watch") {
            ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
        } else {
            ""
        };
        return Err(Refusal::not_acceptable(&format!("{KINDS}{streams}")));
    }
    let json = clauses().any(|mut it| {
        let json = it.next().is_some_and(|it| it == "*/*" || it == JSON);
        json && it
            .filter_map(|it| it.strip_prefix("as="))
            .all(|it| it == "Table" || it.starts_with("PartialObjectMetadata"))
    });
    if json { Ok(()) } else { Err(Refusal::only_accepted(KINDS)) }
}
