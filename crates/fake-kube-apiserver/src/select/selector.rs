//! Field selectors, and the two selectors of a request together.

use serde_json::Value;

use crate::path::Collection;

use crate::select::label::{self, Requirement};
use crate::status::Refusal;

/// Which objects of a collection a list or watch chooses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    fields: Vec<Field>,
    labels: Vec<Requirement>,
}

#[derive(Clone, Debug)]
struct Field {
    /// The member of `metadata`.
    key: &'static str,
    value: String,
    equal: bool,
}

// === impl Selector ===

impl Selector {
    /// Reads both selectors. `name` is the name in the path of a watch on one object.
    pub(crate) fn parse(
        collection: &Collection,
        name: Option<&str>,
        fields: &str,
        labels: &str,
    ) -> Result<Self, Refusal> {
        let labels = label::parse(labels).map_err(Refusal::bad_request)?;
        let mut fields = split(fields)
            .filter(|it| !it.is_empty())
            .map(|term| Field::parse(collection, term))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(name) = name {
            fields.push(Field { key: "name", value: name.to_owned(), equal: true });
        }
        Ok(Self { fields, labels })
    }

    /// Whether it chooses all objects.
    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.labels.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        self.fields.iter().all(|it| (metadata[it.key].as_str().unwrap_or_default() == it.value) == it.equal)
            && self.labels.iter().all(|it| it.matches(&metadata["labels"]))
    }
}

/// Splits at the commas that no backslash escapes.
fn split(selector: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    selector.split(move |it| {
        let comma = it == ',' && !escaped;
        escaped = it == '\\' && !escaped;
        comma
    })
}

// === impl Field ===

impl Field {
    fn parse(collection: &Collection, term: &str) -> Result<Self, Refusal> {
        let (at, operator) = ["!=", "==", "="]
            .into_iter()
            .filter_map(|operator| term.find(operator).map(|at| (at, operator)))
            .min_by_key(|(at, operator)| (*at, std::cmp::Reverse(operator.len())))
            .ok_or_else(|| {
                Refusal::bad_request(format!("invalid selector: '{term}'; can't understand '{term}'"))
            })?;
        let (key, value) = (&term[..at], &term[at + operator.len()..]);
        let key = match key {
            "metadata.name" => "name",
            "metadata.namespace" => "namespace",
            _ if collection.is_custom() => {
                return Err(Refusal::bad_request(format!("field label not supported: {key}")));
            }
            _ => {
                let known = "only \"metadata.name\", \"metadata.namespace\"";
                return Err(Refusal::bad_request(format!(
                    "\"{key}\" is not a known field selector: {known}"
                )));
            }
        };
        Ok(Self { key, value: unescape(value)?, equal: operator != "!=" })
    }
}

/// Removes the backslashes. A value must not have a bare `=`.
fn unescape(value: &str) -> Result<String, Refusal> {
    let mut text = String::new();
    let mut escaped = false;
    for it in value.chars() {
        match it {
            '\\' if !escaped => escaped = true,
            '\\' | ',' | '=' if escaped => {
                text.push(it);
                escaped = false;
            }
            _ if escaped => {
                return Err(Refusal::bad_request(format!(
                    "invalid field selector: invalid escape sequence: \\{it}"
                )));
            }
            '=' => {
                let why = format!("invalid field selector: unescaped character in value: {}", u32::from(it));
                return Err(Refusal::bad_request(why));
            }
            _ => text.push(it),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_selectors() {
        let pods = Collection { group: String::new(), version: "v1".into(), resource: "pods".into() };
        let object = json!({ "metadata": { "name": "a", "namespace": "ns" } });
        let parse = |it| Selector::parse(&pods, None, it, "");
        let matches = |it| parse(it).map(|it| it.matches(&object));
        assert_eq!(matches("metadata.name=a,metadata.namespace==ns"), Ok(true));
        assert_eq!(matches("metadata.name=b"), Ok(false));
        assert_eq!(matches("metadata.name!=b"), Ok(true));
        assert_eq!(matches("metadata.name=a\\,b"), Ok(false));
        for wrong in
            ["metadata.name", "spec.nodeName=b", "metadata.name =a", "metadata.name=a=b", "metadata.name=\\x"]
        {
            assert_eq!(parse(wrong).map(|_| ()).map_err(|it| it.code()), Err(400), "{wrong}");
        }
        let named = Selector::parse(&pods, Some("b"), "", "").unwrap();
        assert!(!named.matches(&object));
    }
}
