//! The syntax of names, label keys and label values, with Kubernetes' own messages.

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
     or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const NAME_PART: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
     '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
     regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// What is wrong with the name of an object.
pub(crate) fn subdomain(name: &str) -> Vec<String> {
    let mut wrong: Vec<String> =
        (name.len() > 253).then(|| "must be no more than 253 characters".to_owned()).into_iter().collect();
    let label = |it: &str| framed(it, |it| it.is_ascii_lowercase() || it.is_ascii_digit(), b"-");
    if !name.split('.').all(label) {
        wrong.push(SUBDOMAIN.to_owned());
    }
    wrong
}

/// What is wrong with a prefix of a generated name. It may end in a dash.
pub(crate) fn subdomain_prefix(prefix: &str) -> Vec<String> {
    match prefix.strip_suffix('-') {
        Some(head) if !head.is_empty() => subdomain(&format!("{head}a")),
        _ => subdomain(prefix),
    }
}

/// What is wrong with the key of a label or annotation, or with the name of a finalizer.
pub(crate) fn qualified(key: &str) -> Vec<String> {
    let parts: Vec<&str> = key.split('/').collect();
    let (mut wrong, name) = match parts.as_slice() {
        [name] => (Vec::new(), *name),
        ["", name] => (vec!["prefix part must be non-empty".to_owned()], *name),
        [prefix, name] => {
            (subdomain(prefix).into_iter().map(|it| format!("prefix part {it}")).collect(), *name)
        }
        _ => {
            let prefixed = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {NAME_PART} {prefixed}")];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    }
    wrong.extend(too_long(name, 63).into_iter().map(|it| format!("name part {it}")));
    if !framed(name, u8::is_ascii_alphanumeric, b"-_.") {
        wrong.push(format!("name part {NAME_PART}"));
    }
    wrong
}

/// What is wrong with the value of a label.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, 63);
    if !value.is_empty() && !framed(value, u8::is_ascii_alphanumeric, b"-_.") {
        wrong.push(LABEL_VALUE.to_owned());
    }
    wrong
}

/// Whether the text has only such characters at both ends, and only these or `others` between.
fn framed(text: &str, end: impl Fn(&u8) -> bool, others: &[u8]) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(&end)
        && bytes.last().is_some_and(&end)
        && bytes.iter().all(|it| end(it) || others.contains(it))
}

fn too_long(text: &str, limit: usize) -> Vec<String> {
    if text.len() <= limit { Vec::new() } else { vec![format!("must be no more than {limit} bytes")] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_objects() {
        for good in ["a", "a.b-c.9", &"a".repeat(253)] {
            assert!(subdomain(good).is_empty(), "{good}");
        }
        for bad in ["", "A", "a_b", "-a", "a.", "a..b", "é", &"a".repeat(254)] {
            assert!(!subdomain(bad).is_empty(), "{bad}");
        }
        assert!(subdomain_prefix("a-").is_empty());
        assert!(!subdomain_prefix("-").is_empty());
    }

    #[test]
    fn keys_and_values_of_labels() {
        for good in ["a", "A_b.c-9", "example.com/a"] {
            assert!(qualified(good).is_empty(), "{good}");
        }
        for bad in ["", "-a", "a b", "/a", "a/", "a/b/c", "Example.com/a", &"a".repeat(64)] {
            assert!(!qualified(bad).is_empty(), "{bad}");
        }
        assert!(label_value("").is_empty());
        assert!(!label_value("-").is_empty());
    }
}
