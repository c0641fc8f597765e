//! Which names Kubernetes allows (Kubernetes, "Object Names and IDs").

/// Whether this is an RFC 1123 label, as the name of a namespace or of a container: 1 to 63 of a-z, 0-9 and '-', with a letter
/// or digit at both ends.
#[must_use]
pub fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_part(text)
}

/// Whether this is an RFC 1123 subdomain, as the name of a pod: 1 to 253 characters, labels of any length with dots between
/// them. Nothing in it has a meaning in a path or in a query.
#[must_use]
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_part)
}

/// Whether this can be the value of a label: up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends.
#[cfg(feature = "election")]
pub(crate) fn is_label_value(text: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_end = |end: Option<&u8>| end.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63 && bytes.iter().copied().all(is_inside) && is_end(bytes.first()) && is_end(bytes.last())
}

fn is_part(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(inside)
}
