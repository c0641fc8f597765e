//! What is wrong with a fence in a cluster, in words.

use crate::server::{Kind, is_ending, name};
use kube_leader_gate::extension::one_line;
use serde_json::Value;
use std::{collections::BTreeSet, fmt};

/// One difference between the fence and what the cluster has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    place: String,
    what: String,
    meaning: String,
}

/// What a difference in a field means. The first line that fits counts.
const MEANINGS: &[(Kind, &str, &str)] = &[
    (
        Kind::Policy,
        "spec.failurePolicy",
        "a write that the API server cannot judge passes unless it says Fail",
    ),
    (Kind::Policy, "spec.paramKind", "the fence does not follow a Lease"),
    (Kind::Policy, "spec.matchConstraints", "the API server shows the fence other requests"),
    (Kind::Policy, "spec.matchConditions[is-from-a-replica]", "the fence judges other clients"),
    (
        Kind::Policy,
        "spec.matchConditions",
        "followers may send something else than the election's policy says",
    ),
    (Kind::Policy, "spec.validations", "the fence judges by another rule"),
    (Kind::Policy, "spec.variables", "the fence judges by another rule"),
    (Kind::Policy, "spec", "the fence has more in it than this crate wrote"),
    (Kind::Policy, "metadata", "the label and the annotation say what the fence is for"),
    (Kind::Binding, "spec.policyName", "the binding puts another policy in force"),
    (
        Kind::Binding,
        "spec.paramRef.parameterNotFoundAction",
        "if the Lease is deleted, the API server refuses every write in the cluster, of any user, unless this says Allow",
    ),
    (Kind::Binding, "spec.paramRef", "the fence follows another Lease"),
    (
        Kind::Binding,
        "spec.validationActions",
        "without Deny, the API server does not refuse the writes of followers",
    ),
    (Kind::Binding, "spec.matchResources", "the fence judges some requests only"),
    (Kind::Binding, "spec", "the binding has more in it than this crate wrote"),
    (Kind::Binding, "metadata", "the label and the annotation say what the fence is for"),
];

impl Drift {
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self { place: one_line(&place.into()), what: one_line(&what.into()), meaning: meaning.into() }
    }

    /// Where the difference is: a kind and the path of a field, for example.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What is there, and what should be.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// What the difference means.
    #[must_use]
    pub fn meaning(&self) -> &str {
        &self.meaning
    }

    /// The differences between the object that is wanted and the one that was found.
    pub(crate) fn between(kind: Kind, wanted: &Value, found: &Value) -> Vec<Self> {
        let mut findings = Vec::new();
        if is_ending(found) {
            let place = format!("{} {:?}", kind.as_str(), name(found));
            let meaning = "it stands only until its finalizers are gone";
            findings.push(Self::new(place, "is being deleted", meaning));
        }
        for part in ["labels", "annotations"] {
            // Other labels and annotations are not the fence's.
            for (key, value) in wanted["metadata"][part].as_object().into_iter().flatten() {
                compare(
                    kind,
                    &format!("metadata.{part}[{key}]"),
                    value,
                    &found["metadata"][part][key],
                    &mut findings,
                );
            }
        }
        compare(kind, "spec", &wanted["spec"], &found["spec"], &mut findings);
        findings
    }
}

fn compare(kind: Kind, path: &str, wanted: &Value, found: &Value, findings: &mut Vec<Drift>) {
    if wanted == found {
        return;
    }
    if let (Some(one), Some(other)) = (wanted.as_object(), found.as_object()) {
        for key in one.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
            compare(kind, &format!("{path}.{key}"), &wanted[key], &found[key], findings);
        }
        return;
    }
    if let (Some(one), Some(other)) = (named(wanted), named(found)) {
        let names: BTreeSet<_> = one.iter().chain(&other).map(|(name, _)| *name).collect();
        let of = |list: &[(&str, &Value)], name| {
            list.iter().find(|(it, _)| *it == name).map_or(Value::Null, |(_, value)| (*value).clone())
        };
        let before = findings.len();
        for name in names {
            compare(kind, &format!("{path}[{name}]"), &of(&one, name), &of(&other, name), findings);
        }
        if findings.len() > before {
            return;
        }
    }
    let what = match (wanted, found) {
        (Value::Null, found) => format!("is {found}, and should not be there"),
        (wanted, Value::Null) => format!("is missing, and should be {wanted}"),
        (wanted, found) => format!("is {found}, and should be {wanted}"),
    };
    let meaning = MEANINGS.iter().find(|(of, field, _)| *of == kind && path.starts_with(field));
    let meaning = meaning.map_or("the fence differs from the one that this crate wrote", |(.., it)| it);
    findings.push(Drift::new(format!("{} {path}", kind.as_str()), what, meaning));
}

/// The entries of a list by their names, if they have names.
fn named(list: &Value) -> Option<Vec<(&str, &Value)>> {
    list.as_array()?.iter().map(|entry| Some((entry["name"].as_str()?, entry))).collect()
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, what, meaning } = self;
        write!(f, "{place} {what}: {meaning}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn findings(wanted: &Value, found: &Value) -> Vec<String> {
        let spec = |spec: &Value| json!({ "spec": spec });
        let found = Drift::between(Kind::Policy, &spec(wanted), &spec(found));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_difference_is_named_with_its_meaning() {
        let condition = |name: &str, is: &str| json!({ "name": name, "expression": is });
        let wanted =
            json!({ "failurePolicy": "Fail", "matchConditions": [condition("a", "x"), condition("b", "y")] });
        assert!(findings(&wanted, &wanted).is_empty());
        let found = json!({ "failurePolicy": "Ignore", "matchConditions": [condition("b", "z"), condition("c", "x")],
                            "news": 1 });
        let means = "followers may send something else than the election's policy says";
        assert_eq!(
            findings(&wanted, &found),
            [
                "ValidatingAdmissionPolicy spec.failurePolicy is \"Ignore\", and should be \"Fail\": a write that the \
                 API server cannot judge passes unless it says Fail"
                    .to_owned(),
                format!(
                    "ValidatingAdmissionPolicy spec.matchConditions[a] is missing, and should be \
                     {{\"expression\":\"x\",\"name\":\"a\"}}: {means}"
                ),
                format!(
                    "ValidatingAdmissionPolicy spec.matchConditions[b].expression is \"z\", and should be \"y\": {means}"
                ),
                format!(
                    "ValidatingAdmissionPolicy spec.matchConditions[c] is {{\"expression\":\"x\",\"name\":\"c\"}}, and \
                     should not be there: {means}"
                ),
                "ValidatingAdmissionPolicy spec.news is 1, and should not be there: the fence has more in it than \
                 this crate wrote"
                    .to_owned(),
            ]
        );
    }

    /// Only the order differs.
    #[test]
    fn another_order_of_a_list_is_found() {
        let condition = |name: &str| json!({ "name": name });
        let wanted = json!({ "variables": [condition("a"), condition("b")] });
        let found = json!({ "variables": [condition("b"), condition("a")] });
        assert_eq!(findings(&wanted, &found).len(), 1);
    }
}
