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

/// How an answer shows objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    /// The metadata alone, of one object or of each object of a watch.
    Metadata,
    /// A list of metadata alone.
    MetadataList,
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

/// Reads in which form the client accepts the answer: that of the first media type in `Accept` that is JSON in a form
/// that this server has. A client that asks for a Table gets whole objects.
pub(crate) fn form(info: &RequestInfo) -> Result<Form, Refusal> {
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
    let form = clauses().find_map(|mut clause| {
        let json = clause.next().is_some_and(|it| it == "*/*" || it == JSON);
        if json { Form::asked(clause) } else { None }
    });
    form.ok_or_else(|| Refusal::only_accepted(KINDS))
}

// === impl Form ===

impl Form {
    /// The form that the parameters of a media type ask for. None if the server does not have it.
    fn asked<'a>(parameters: impl Iterator<Item = &'a str>) -> Option<Self> {
        let (mut form, mut group, mut version) = ("", "", "");
        for parameter in parameters {
            match parameter.split_once('=') {
                Some(("as", it)) => form = it,
                Some(("g", it)) => group = it,
                Some(("v", it)) => version = it,
                _ => {}
            }
        }
        match (form, group, version) {
            ("" | "Table", ..) => Some(Self::Whole),
            ("PartialObjectMetadata", "meta.k8s.io", "v1") => Some(Self::Metadata),
            ("PartialObjectMetadataList", "meta.k8s.io", "v1") => Some(Self::MetadataList),
            _ => None,
        }
    }

    /// Refuses to show a list as an object, or an object as a list. This server checks it for reads alone: the real
    /// server also refuses to show the result of a write, which it has carried out by then.
    pub(crate) fn check(self, info: &RequestInfo) -> Result<(), Refusal> {
        match (self, info.verb) {
            (Self::Metadata, "list") => Err(Refusal::other_form("PartialObjectMetadata", "a list")),
            (Self::MetadataList, "get") => {
                Err(Refusal::other_form("PartialObjectMetadataList", "not a list"))
            }
            _ => Ok(()),
        }
    }
}
