//! Request bodies: read with a bound, decoded by their content type.

use bytes::Bytes;
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use super::request::RequestInfo;
use super::service::BoxError;
use super::status::Refusal;

/// What a real API server accepts by default.
pub(super) const BODY_LIMIT: usize = 3 * 1024 * 1024;

const PATCH_TYPES: &str =
    "application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml";

/// How a patch is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatchKind {
    Merge,
    Apply,
}

/// A decoded body; `Null` when there is none and none is needed.
#[derive(Debug, Default)]
pub(super) struct Payload {
    pub(super) value: Value,
    pub(super) patch: Option<PatchKind>,
}

/// What a delete demands of the object.
#[derive(Debug)]
pub(super) struct Precondition {
    pub(super) uid: Option<String>,
    pub(super) version: Option<String>,
}

/// Reads the body of a request whose method has one. The outer error is a broken connection.
pub(super) async fn read<B>(info: &RequestInfo, body: B) -> Result<Result<Bytes, Refusal>, BoxError>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    if !info.is_write() {
        return Ok(Ok(Bytes::new()));
    }
    if info.content_length.is_some_and(|it| usize::try_from(it).is_ok_and(|it| it > BODY_LIMIT)) {
        return Ok(Err(Refusal::too_large(BODY_LIMIT)));
    }
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(whole) => Ok(Ok(whole.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Ok(Err(Refusal::too_large(BODY_LIMIT))),
        Err(error) => Err(error),
    }
}

// === impl Payload ===

impl Payload {
    pub(super) fn decode(info: &RequestInfo, bytes: &[u8]) -> Result<Self, Refusal> {
        let media_type = info.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match info.method.as_str() {
            "POST" | "PUT" => {
                if !matches!(media_type.as_str(), "" | "application/json" | "*/*") {
                    return Err(Refusal::unsupported_media_type("application/json"));
                }
                Ok(Self { value: json(bytes)?, patch: None })
            }
            "PATCH" => {
                let patch = match media_type.as_str() {
                    "application/merge-patch+json" | "application/strategic-merge-patch+json" => {
                        PatchKind::Merge
                    }
                    "application/apply-patch+yaml" => PatchKind::Apply,
                    _ => return Err(Refusal::unsupported_media_type(PATCH_TYPES)),
                };
                if patch == PatchKind::Apply && info.query.get("fieldManager").is_none_or(str::is_empty) {
                    return Err(Refusal::bad_request("fieldManager is required for apply patch"));
                }
                Ok(Self { value: json(bytes)?, patch: Some(patch) })
            }
            "DELETE" if !bytes.is_empty() => Ok(Self { value: json(bytes)?, patch: None }),
            _ => Ok(Self::default()),
        }
    }

    /// The preconditions of `DeleteOptions`.
    pub(super) fn precondition(&self) -> Precondition {
        let wanted = &self.value["preconditions"];
        let text = |it: &Value| it.as_str().map(str::to_owned);
        Precondition { uid: text(&wanted["uid"]), version: text(&wanted["resourceVersion"]) }
    }

    /// `dryRun` of `DeleteOptions`.
    pub(super) fn dry_run(&self, info: &RequestInfo) -> Result<bool, Refusal> {
        if info.method != http::Method::DELETE {
            return Ok(false);
        }
        let mut dry = false;
        for value in self.value["dryRun"].as_array().into_iter().flatten() {
            dry = info.check_dry_run(value.as_str().unwrap_or_default())?;
        }
        Ok(dry)
    }
}

fn json(bytes: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(bytes).map_err(|error| {
        Refusal::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
    })
}
