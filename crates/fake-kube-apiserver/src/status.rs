//! Refusals and their `v1.Status` bodies, with Kubernetes' messages.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cause::Cause;
use crate::path::{Collection, Target};

/// Why the server refused a request: the content of a `v1.Status`.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    code: u16,
    reason: &'static str,
    message: String,
    details: Option<Value>,
    retry_after: Option<Duration>,
}

// === impl Refusal ===

impl Refusal {
    /// The HTTP status code.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.code
    }

    /// The reason for machines, such as `Conflict`. It may be empty.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.reason
    }

    /// The message for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The `v1.Status` object.
    pub(crate) fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        if let Some(after) = self.retry_after {
            status["details"]["retryAfterSeconds"] = after.as_secs().into();
        }
        status
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, retry_after: None }
    }

    fn about(mut self, collection: &Collection, name: &str) -> Self {
        let mut details = json!({ "kind": collection.resource });
        if !name.is_empty() {
            details["name"] = name.into();
        }
        if !collection.group.is_empty() {
            details["group"] = collection.group.as_str().into();
        }
        self.details = Some(details);
        self
    }

    pub(crate) fn not_found(collection: &Collection, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{collection} \"{name}\" not found")).about(collection, name)
    }

    pub(crate) fn namespace_not_found(namespace: &str) -> Self {
        let namespaces =
            Collection { group: String::new(), version: "v1".into(), resource: "namespaces".into() };
        Self::not_found(&namespaces, namespace)
    }

    pub(crate) fn no_such_path() -> Self {
        let mut refusal = Self::new(404, "NotFound", "the server could not find the requested resource");
        refusal.details = Some(json!({}));
        refusal
    }

    pub(crate) fn method_not_allowed() -> Self {
        let mut refusal = Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        refusal.details = Some(json!({}));
        refusal
    }

    pub(crate) fn already_exists(collection: &Collection, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{collection} \"{name}\" already exists"))
            .about(collection, name)
    }

    pub(crate) fn stale(collection: &Collection, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(collection, name, why)
    }

    pub(crate) fn conflict(collection: &Collection, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {collection} \"{name}\": {why}");
        Self::new(409, "Conflict", message).about(collection, name)
    }

    /// A failed precondition of a delete. The message names the kind, not the resource.
    pub(crate) fn precondition(kind: &str, collection: &Collection, name: &str, why: &str) -> Self {
        let kinds = Collection { resource: kind.to_owned(), ..collection.clone() };
        Self::conflict(&kinds, name, why)
    }

    pub(crate) fn being_deleted(collection: &Collection, name: &str) -> Self {
        let mut refusal = Self::already_exists(collection, name);
        refusal.message.insert_str(0, "object is being deleted: ");
        refusal
    }

    pub(crate) fn forbidden(user: &str, verb: &str, target: &Target) -> Self {
        let Target { collection, namespace, name, .. } = target;
        let name = name.as_deref().unwrap_or_default();
        let quoted = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
        let place = match namespace {
            Some(namespace) => format!("in the namespace \"{namespace}\""),
            None => "at the cluster scope".to_owned(),
        };
        let message = format!(
            "{collection}{quoted} is forbidden: User \"{user}\" cannot {verb} resource \"{}\" in API group \"{}\" {place}",
            collection.resource, collection.group,
        );
        Self::new(403, "Forbidden", message).about(collection, name)
    }

    pub(crate) fn path_forbidden(user: &str, verb: &str, path: &str) -> Self {
        let message = format!("forbidden: User \"{user}\" cannot {verb} path \"{path}\"");
        let mut refusal = Self::new(403, "Forbidden", message);
        refusal.details = Some(json!({}));
        refusal
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn invalid(kind: &str, collection: &Collection, name: &str, causes: &[Cause]) -> Self {
        let qualified = if collection.group.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}.{}", collection.group)
        };
        let mut said: Vec<String> = Vec::new();
        for cause in causes {
            let cause = format!("{}: {}", cause.field, cause.message);
            if !said.contains(&cause) {
                said.push(cause);
            }
        }
        let said = if said.len() == 1 { said.remove(0) } else { format!("[{}]", said.join(", ")) };
        let mut refusal = Self::new(422, "Invalid", format!("{qualified} \"{name}\" is invalid: {said}"))
            .about(collection, name);
        if let Some(details) = &mut refusal.details {
            details["kind"] = kind.into();
            details["causes"] = causes
                .iter()
                .map(|it| json!({ "reason": it.reason, "message": it.message, "field": it.field }))
                .collect();
        }
        refusal
    }

    /// Options with invalid values.
    pub(crate) fn invalid_options(kind: &str, causes: &[Cause]) -> Self {
        let options =
            Collection { group: "meta.k8s.io".into(), version: "v1".into(), resource: kind.to_owned() };
        Self::invalid(kind, &options, "", causes)
    }

    /// A patch whose result is not an object of the kind.
    pub(crate) fn invalid_patch(result: &Value, why: &str) -> Self {
        let nothing = Collection { group: String::new(), version: String::new(), resource: String::new() };
        let cause = Cause::invalid("patch", &result.to_string().into(), why);
        let mut refusal = Self::invalid("", &nothing, "", &[cause]);
        if let Some(Value::Object(details)) = &mut refusal.details {
            details.remove("kind");
        }
        refusal
    }

    /// A patch that cannot be applied to the object.
    pub(crate) fn inapplicable_patch() -> Self {
        let mut refusal =
            Self::new(422, "Invalid", "the server rejected our request due to an error in our request");
        refusal.details = Some(json!({}));
        refusal
    }

    /// An error that the real server answers with 500 and no reason.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
    }

    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn unknown_media_type() -> Self {
        let mut refusal = Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
        refusal.details = Some(json!({}));
        refusal
    }

    pub(crate) fn not_acceptable(available: &str) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {available}");
        let mut refusal = Self::new(406, "NotAcceptable", message);
        refusal.details = Some(json!({}));
        refusal
    }

    pub(crate) fn only_accepted(accepted: &str) -> Self {
        Self::new(406, "NotAcceptable", format!("only the following media types are accepted: {accepted}"))
    }

    /// A list that the client wants as one object, or the other way round.
    pub(crate) fn other_form(asked: &str, found: &str) -> Self {
        Self::new(406, "NotAcceptable", format!("you requested {asked}, but the requested object is {found}"))
    }

    pub(crate) fn version_on_create() -> Self {
        Self::new(500, "", "resourceVersion should not be set on objects to be created")
    }

    pub(crate) fn expired(asked: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {asked} ({oldest})"))
    }

    /// A list, or a later page of one, of a version that the server has forgotten.
    pub(crate) fn list_expired(paging: bool) -> Self {
        let why = if paging {
            "The provided continue parameter is too old to display a consistent list result. You can start a new list \
             without the continue parameter."
        } else {
            "The resourceVersion for the provided list is too old."
        };
        Self::new(410, "Expired", why)
    }

    pub(crate) fn version_too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let causes =
            json!([{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }]);
        Self {
            details: Some(json!({ "causes": causes })),
            retry_after: Some(Duration::from_secs(1)),
            ..Self::new(504, "Timeout", message)
        }
    }

    pub(crate) fn timeout() -> Self {
        Self::new(504, "Timeout", "Timeout: request did not complete within the allotted timeout")
    }

    /// The answer of a fault, with Kubernetes' message for the code if there is one.
    pub(crate) fn injected(code: u16, retry_after: Option<Duration>) -> Self {
        let code = if (400..600).contains(&code) { code } else { 500 };
        let (reason, message) = match code {
            429 => ("TooManyRequests", "Too many requests, please try again later."),
            500 => ("InternalError", "Internal error occurred: injected by a test"),
            503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
            504 => ("Timeout", "Timeout: request did not complete within the allotted timeout"),
            _ => ("", "injected by a test"),
        };
        Self { retry_after, ..Self::new(code, reason, message) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
