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

fn is_part(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(inside)
}
