//! Compares the two answers.

use std::{collections::BTreeSet, fmt};

use serde_json::{Value, json};

use super::{run::SILENCE, scene::Expect};

struct Difference {
    path: String,
    real: Option<Value>,
    ours: Option<Value>,
}

/// What is wrong with the two answers. Empty when they are as expected.
pub fn complaints(expect: &Expect, real: &Value, ours: &Value) -> Vec<String> {
    if [real, ours].iter().any(|it| it.to_string().contains(SILENCE)) {
        return vec![format!("one has come to nothing\n        real: {real}\n        ours: {ours}")];
    }
    let differences = differences(real, ours);
    let no_excuse = |why: &str| vec![format!("there is no such difference any more: {why}")];
    match expect {
        Expect::Difference(why) | Expect::OtherWords(why) if differences.is_empty() => no_excuse(why),
        Expect::Difference(_) => Vec::new(),
        Expect::OtherWords(_) if differences.iter().all(|it| it.path.ends_with(".message")) => Vec::new(),
        Expect::Same | Expect::OtherWords(_) => differences.iter().map(Difference::to_string).collect(),
    }
}

fn differences(real: &Value, ours: &Value) -> Vec<Difference> {
    if real["status"] != ours["status"] {
        // The two answers have nothing in common.
        let path = "the answer".to_owned();
        return vec![Difference { path, real: Some(gist(real)), ours: Some(gist(ours)) }];
    }
    let mut found = Vec::new();
    descend("", Some(real), Some(ours), &mut found);
    found
}

fn descend(path: &str, real: Option<&Value>, ours: Option<&Value>, found: &mut Vec<Difference>) {
    match (real, ours) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                descend(&format!("{path}.{key}"), a.get(key), b.get(key), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                descend(&format!("{path}[{index}]"), a.get(index), b.get(index), found);
            }
        }
        _ if real == ours => {}
        _ => found.push(Difference { path: path.to_owned(), real: real.cloned(), ours: ours.cloned() }),
    }
}

/// The status and the message, or the rest.
fn gist(answer: &Value) -> Value {
    let body = &answer["body"];
    if body["kind"] == "Status" {
        json!([body["code"], body["reason"], body["message"], body["details"]])
    } else {
        json!([answer["status"], body])
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |it: &Option<Value>| it.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
        let (real, ours) = (text(&self.real), text(&self.ours));
        let same = real.chars().zip(ours.chars()).take_while(|(a, b)| a == b).count();
        let (real, ours) = (around(&real, same), around(&ours, same));
        write!(f, "{}\n        real: {real}\n        ours: {ours}", self.path)
    }
}

/// The part of a long text where the difference begins.
fn around(text: &str, at: usize) -> String {
    let skipped = if text.len() > 400 { at.saturating_sub(60) } else { 0 };
    let shown: String = text.chars().skip(skipped).take(400).collect();
    format!("{}{shown}", if skipped > 0 { "…" } else { "" })
}
