//! One field error of a validation.

use serde_json::Value;

/// One field error, as in `details.causes` of a `v1.Status`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cause {
    pub(crate) field: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

// === impl Cause ===

impl Cause {
    pub(crate) fn invalid(field: &'static str, value: &Value, why: &str) -> Self {
        Self { field, reason: "FieldValueInvalid", message: format!("Invalid value: {value}: {why}") }
    }

    pub(crate) fn required(field: &'static str, why: &str) -> Self {
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        Self { field, reason: "FieldValueRequired", message: format!("Required value{why}") }
    }

    pub(crate) fn forbidden(field: &'static str, why: &str) -> Self {
        Self { field, reason: "FieldValueForbidden", message: format!("Forbidden: {why}") }
    }

    pub(crate) fn too_long(field: &'static str, limit: usize) -> Self {
        let message = format!("Too long: may not be more than {limit} bytes");
        Self { field, reason: "FieldValueTooLong", message }
    }

    pub(crate) fn unsupported(field: &'static str, value: &Value, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|it| format!("\"{it}\"")).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", supported.join(", "));
        Self { field, reason: "FieldValueNotSupported", message }
    }
}
