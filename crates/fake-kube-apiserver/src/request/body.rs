//! Request bodies: read with a limit, and decoded without looking at the existing object.

use bytes::Bytes;
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use crate::error::BoxError;
use crate::object::decode::{self, Decoded, NO_JSON, Undecodable};
use crate::path::Collection;
use crate::request::RequestInfo;
use crate::request::negotiate::{self, PatchKind};
use crate::request::write::{DeleteOptions, WriteOptions};
use crate::status::Refusal;

/// The default limit of a real API server, in bytes.
pub(crate) const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// The decoded body and options of a request.
#[derive(Debug)]
pub(crate) enum Payload {
    Read,
    /// A create or update.
    Object {
        decoded: Decoded,
        options: WriteOptions,
    },
    /// A patch. It is decoded together with the object that it changes.
    Patch {
        kind: PatchKind,
        bytes: Bytes,
        options: WriteOptions,
    },
    Delete(DeleteOptions),
}

/// Reads the body of a write. The outer error is a broken connection.
pub(crate) async fn read<B>(info: &RequestInfo, body: B) -> Result<Result<Bytes, Refusal>, BoxError>
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
    pub(crate) fn decode(
        info: &RequestInfo,
        collection: &Collection,
        bytes: &Bytes,
    ) -> Result<Self, Refusal> {
        match info.method.as_str() {
            "POST" | "PUT" => {
                negotiate::json_body(info)?;
                let options = WriteOptions::parse(info, None)?;
                let decoded = object(collection, bytes).map_err(|why| why.refusal(collection, bytes))?;
                Ok(Self::Object { decoded, options })
            }
            "PATCH" => {
                let kind = negotiate::patch_kind(info)?;
                let options = WriteOptions::parse(info, Some(kind))?;
                Ok(Self::Patch { kind, bytes: bytes.clone(), options })
            }
            "DELETE" => {
                let body = if bytes.is_empty() {
                    Value::Null
                } else {
                    negotiate::json_body(info)?;
                    delete_options(bytes)?
                };
                DeleteOptions::parse(body, &info.query).map(Self::Delete)
            }
            _ => Ok(Self::Read),
        }
    }

    /// Whether the request must change nothing.
    pub(crate) fn is_dry_run(&self) -> bool {
        match self {
            Self::Read => false,
            Self::Object { options, .. } | Self::Patch { options, .. } => options.dry,
            Self::Delete(options) => options.dry,
        }
    }

    /// `metadata.resourceVersion` of the object in the body.
    pub(crate) fn seen_version(&self) -> Option<&str> {
        let Self::Object { decoded, .. } = self else { return None };
        decoded.resource_version()
    }
}

fn object(collection: &Collection, bytes: &[u8]) -> Result<Decoded, Undecodable> {
    let value = serde_json::from_slice(bytes)
        .map_err(|error| Undecodable::Unrecognized(format!("{NO_JSON}{error}")))?;
    decode::decode(collection, value)
}

/// Reads `DeleteOptions`. A body without a kind is accepted, one of another kind is not.
fn delete_options(bytes: &[u8]) -> Result<Value, Refusal> {
    let refuse = |why: &str| Refusal::bad_request(format!("{NO_JSON}{why}"));
    let options: Value = serde_json::from_slice(bytes).map_err(|error| refuse(&error.to_string()))?;
    if !options.is_object() {
        return Err(refuse("the body is not an object"));
    }
    match options["kind"].as_str() {
        None | Some("" | "DeleteOptions") => Ok(options),
        Some(kind) => {
            let version = options["apiVersion"].as_str().unwrap_or_default();
            Err(Refusal::bad_request(format!("no kind \"{kind}\" is registered for version \"{version}\"")))
        }
    }
}
