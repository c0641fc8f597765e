//! Field and label selectors.

use serde_json::Value;

use super::status::Refusal;

/// Which objects of a collection a list or watch wants.
#[derive(Clone, Debug, Default)]
pub(super) struct Selector {
    fields: Vec<Field>,
    labels: Vec<Label>,
}

#[derive(Clone, Debug)]
struct Field {
    /// The name of the member of `metadata`.
    key: &'static str,
    value: String,
    equal: bool,
}

#[derive(Clone, Debug)]
struct Label {
    key: String,
    wants: Wants,
}

#[derive(Clone, Debug)]
enum Wants {
    Present,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
}

// === impl Selector ===

impl Selector {
    pub(super) fn parse(fields: Option<&str>, labels: Option<&str>) -> Result<Self, Refusal> {
        Ok(Self {
            fields: terms(fields.unwrap_or_default()).map(Field::parse).collect::<Result<_, _>>()?,
            labels: terms(labels.unwrap_or_default()).map(Label::parse).collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        self.fields.iter().all(|it| (metadata[it.key].as_str().unwrap_or_default() == it.value) == it.equal)
            && self.labels.iter().all(|it| it.matches(&metadata["labels"]))
    }
}

/// Splits at the commas outside of parentheses.
fn terms(selector: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    selector
        .split(move |it| {
            match it {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            it == ',' && depth == 0
        })
        .map(str::trim)
        .filter(|it| !it.is_empty())
}

/// Splits at the operator: the two sides, and whether it asks for equality.
fn comparison(term: &str) -> Option<(&str, &str, bool)> {
    let (key, value, equal) = if let Some((key, value)) = term.split_once("!=") {
        (key, value, false)
    } else if let Some((key, value)) = term.split_once("==") {
        (key, value, true)
    } else {
        let (key, value) = term.split_once('=')?;
        (key, value, true)
    };
    Some((key.trim(), value.trim(), equal))
}

// === impl Field ===

impl Field {
    fn parse(term: &str) -> Result<Self, Refusal> {
        let (key, value, equal) = comparison(term).ok_or_else(|| {
            Refusal::bad_request(format!("invalid field selector: can't understand '{term}'"))
        })?;
        let key = match key {
            "metadata.name" => "name",
            "metadata.namespace" => "namespace",
            _ => return Err(Refusal::bad_request(format!("field label not supported: {key}"))),
        };
        Ok(Self { key, value: value.to_owned(), equal })
    }
}

// === impl Label ===

impl Label {
    fn parse(term: &str) -> Result<Self, Refusal> {
        let wrong = || Refusal::bad_request(format!("unable to parse requirement: found '{term}'"));
        let (key, wants) = if let Some((head, set)) = term.split_once('(') {
            let set = set.strip_suffix(')').ok_or_else(wrong)?;
            let values = set.split(',').map(|it| it.trim().to_owned()).collect();
            match head.split_whitespace().collect::<Vec<_>>().as_slice() {
                [key, "in"] => (*key, Wants::In(values)),
                [key, "notin"] => (*key, Wants::NotIn(values)),
                _ => return Err(wrong()),
            }
        } else if let Some((key, value, equal)) = comparison(term) {
            let values = vec![value.to_owned()];
            (key, if equal { Wants::In(values) } else { Wants::NotIn(values) })
        } else if let Some(key) = term.strip_prefix('!') {
            (key.trim(), Wants::Absent)
        } else {
            (term, Wants::Present)
        };
        if key.is_empty() || key.contains(|it: char| it.is_whitespace() || "()!=,".contains(it)) {
            return Err(wrong());
        }
        Ok(Self { key: key.to_owned(), wants })
    }

    fn matches(&self, labels: &Value) -> bool {
        let found = labels.get(&self.key).and_then(Value::as_str);
        match &self.wants {
            Wants::Present => found.is_some(),
            Wants::Absent => found.is_none(),
            Wants::In(values) => found.is_some_and(|found| values.iter().any(|it| it == found)),
            Wants::NotIn(values) => !found.is_some_and(|found| values.iter().any(|it| it == found)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels(selector: &str) -> bool {
        let object = json!({ "metadata": { "name": "a", "labels": { "app": "x", "tier": "1" } } });
        Selector::parse(None, Some(selector)).expect(selector).matches(&object)
    }

    #[test]
    fn label_selectors() {
        for yes in [
            "",
            "app=x",
            "app==x",
            "app!=y",
            "nope!=y",
            "app",
            "!nope",
            "app in (y, x),tier=1",
            "app notin (y)",
        ] {
            assert!(labels(yes), "{yes}");
        }
        for no in
            ["app=y", "app!=x", "nope", "!app", "app in (y,z)", "app notin (x,y)", "app=x,tier=2", "nope=x"]
        {
            assert!(!labels(no), "{no}");
        }
        for wrong in ["app in x", "app in (x", "app like (x)", "=x", "a b"] {
            assert!(Selector::parse(None, Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn field_selectors() {
        let object = json!({ "metadata": { "name": "a", "namespace": "ns" } });
        let matches = |it| Selector::parse(Some(it), None).map(|it| it.matches(&object));
        assert_eq!(matches("metadata.name=a,metadata.namespace==ns"), Ok(true));
        assert_eq!(matches("metadata.name=b"), Ok(false));
        assert_eq!(matches("metadata.name!=b"), Ok(true));
        assert_eq!(
            matches("spec.nodeName=b").unwrap_err().message(),
            "field label not supported: spec.nodeName"
        );
    }
}
