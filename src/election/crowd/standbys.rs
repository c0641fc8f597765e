//! The followers that stand in the lease as its next holders.

use crate::{
    election::preemption::{Precedence, is_key},
    lease::{Identity, LeaseRecord},
};
use serde_json::{Value, json};

/// The annotation with the standbys: a JSON array. An element is a candidate's identity, or an array of its identity
/// and the key of its priority.
pub(in crate::election) const STANDBYS: &str = "kube-leader-gate/standbys";

/// How many candidates stand in the lease at most.
pub(in crate::election) const PLACES: usize = 3;

/// The longest value that is read, in bytes. Three identities and three keys fit, in any spelling of JSON that this
/// crate writes.
const LONGEST: usize = 4096;

/// The standbys, the first one first. No name stands twice. A value that makes no sense has no standbys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::election) struct Standbys(Vec<Standby>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Standby {
    identity: String,
    /// Empty if the candidate has no priority.
    key: String,
}

// === impl Standbys ===

impl Standbys {
    /// The standbys in `record`.
    pub(in crate::election) fn of(record: &LeaseRecord) -> Self {
        let text = record.annotation(STANDBYS).and_then(Value::as_str).filter(|text| text.len() <= LONGEST);
        let Some(Ok(Value::Array(elements))) = text.map(serde_json::from_str) else { return Self::default() };
        let mut standbys = Self::default();
        for standby in elements.iter().filter_map(Standby::parse) {
            // The holder is no follower.
            let follows = record.holder() != Some(standby.identity.as_str());
            if follows && standbys.place(&standby.identity).is_none() {
                standbys.0.push(standby);
            }
        }
        standbys.0.truncate(PLACES);
        standbys
    }

    /// The value of the annotation. None if there is no standby.
    pub(in crate::election) fn annotation(&self) -> Option<String> {
        let elements: Vec<Value> = self.0.iter().map(Standby::element).collect();
        (!elements.is_empty()).then(|| Value::Array(elements).to_string())
    }

    pub(in crate::election) fn len(&self) -> usize {
        self.0.len()
    }

    pub(in crate::election) fn is_full(&self) -> bool {
        self.0.len() >= PLACES
    }

    /// The place of this candidate: 0 is the first one.
    pub(in crate::election) fn place(&self, identity: &str) -> Option<usize> {
        self.0.iter().position(|standby| standby.identity == identity)
    }

    /// How many standbys go before this candidate, and whether it is one of them. A candidate never waits for a
    /// standby that it precedes.
    pub(in crate::election) fn before(&self, identity: &str, precedence: &Precedence) -> (usize, bool) {
        let place = self.place(identity);
        let ahead = &self.0[..place.unwrap_or(self.0.len())];
        (ahead.iter().filter(|standby| !precedence.precedes(&standby.key)).count(), place.is_some())
    }

    /// The list with this candidate in it: before those that it precedes, else at the end. None if there is no place
    /// for it, or it has one.
    pub(in crate::election) fn with(&self, identity: &Identity, precedence: &Precedence) -> Option<Self> {
        let place = self.0.iter().position(|standby| precedence.precedes(&standby.key));
        let place = place.unwrap_or(self.0.len());
        if place >= PLACES || self.place(identity.as_str()).is_some() {
            return None;
        }
        let mut standbys = self.0.clone();
        let (identity, key) = (identity.to_string(), precedence.key().to_owned());
        standbys.insert(place, Standby { identity, key });
        standbys.truncate(PLACES);
        Some(Self(standbys))
    }

    /// The list without this candidate.
    pub(in crate::election) fn without(mut self, identity: &str) -> Self {
        self.0.retain(|standby| standby.identity != identity);
        self
    }

    /// The list without its first `gone` candidates.
    pub(in crate::election) fn after(&self, gone: usize) -> Self {
        Self(self.0[gone.min(self.0.len())..].to_vec())
    }
}

// === impl Standby ===

impl Standby {
    fn parse(element: &Value) -> Option<Self> {
        let (identity, key) = match element {
            Value::String(identity) => (identity.as_str(), ""),
            Value::Array(both) => match both.as_slice() {
                [Value::String(identity), Value::String(key)] => (identity.as_str(), key.as_str()),
                _ => return None,
            },
            _ => return None,
        };
        let sound = Identity::new(identity).is_ok() && (key.is_empty() || is_key(key));
        sound.then(|| Self { identity: identity.to_owned(), key: key.to_owned() })
    }

    fn element(&self) -> Value {
        if self.key.is_empty() { json!(self.identity) } else { json!([self.identity, self.key]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::election::preemption::Priority;
    use proptest::prelude::*;
    use std::time::Duration;

    fn precedence(key: Option<&str>) -> Precedence {
        let ranked = |key| Priority::ranked(key, ["high", "low", ""]).unwrap();
        Precedence::new(key.map(ranked), Duration::from_secs(15))
    }

    fn record(value: &Value) -> LeaseRecord {
        let metadata = json!({ "uid": "u", "resourceVersion": "1", "annotations": { STANDBYS: value } });
        LeaseRecord::from_json(json!({ "metadata": metadata, "spec": { "holderIdentity": "holder" } }))
            .unwrap()
    }

    fn read(text: &str) -> Standbys {
        Standbys::of(&record(&json!(text)))
    }

    fn joined(names: &[(&str, Option<&str>)]) -> Standbys {
        names.iter().fold(Standbys::default(), |list, (name, key)| {
            list.with(&Identity::new(*name).unwrap(), &precedence(*key)).unwrap()
        })
    }

    #[test]
    fn a_list_is_read_as_written() {
        let list = joined(&[("a", Some("low")), ("b \"\\é", None), ("c", Some("low"))]);
        let text = list.annotation().unwrap();
        assert_eq!(text, r#"[["a","low"],["c","low"],"b \"\\é"]"#);
        assert_eq!(read(&text), list);
        assert_eq!(Standbys::default().annotation(), None);
    }

    #[test]
    fn the_longest_names_fit() {
        let quotes = |letter: &str| format!("{letter}{}", "\"".repeat(252));
        let mut list = Standbys::default();
        for name in ["a", "b", "c"] {
            let priority = Priority::new(quotes("k"), |_| false).unwrap();
            let precedence = Precedence::new(Some(priority), Duration::from_secs(15));
            list = list.with(&Identity::new(quotes(name)).unwrap(), &precedence).unwrap();
        }
        assert_eq!(read(&list.annotation().unwrap()), list);
    }

    #[test]
    fn nonsense_has_no_standbys() {
        let thousands = json!((0..2000).map(|n| n.to_string()).collect::<Vec<_>>()).to_string();
        let deep = "[".repeat(4000);
        for text in ["", "a,b", "{}", "null", "7", "[7,null,[],{},[\"a\"],\"\"]", &thousands, &deep] {
            assert_eq!(read(text), Standbys::default(), "{text}");
        }
        for value in [json!(7), json!(null), json!(["a"]), json!({ "a": 1 })] {
            assert_eq!(Standbys::of(&record(&value)), Standbys::default());
        }
    }

    #[test]
    fn the_first_three_distinct_followers_count() {
        let list = read(r#"["a","a","holder","b","\u0000","c","d"]"#);
        assert_eq!(list, joined(&[("a", None), ("b", None), ("c", None)]));
        assert_eq!(read(r#"["a","b","a","c","d"]"#), joined(&[("a", None), ("b", None), ("c", None)]));
    }

    #[test]
    fn a_full_list_has_no_place() {
        let full = joined(&[("a", None), ("b", None), ("c", None)]);
        let plain = precedence(None);
        assert!(full.is_full() && full.with(&Identity::new("d").unwrap(), &plain).is_none());
        assert!(joined(&[("a", None)]).with(&Identity::new("a").unwrap(), &plain).is_none(), "it has one");
        assert_eq!(full.before("d", &plain), (3, false));
        assert_eq!(full.before("b", &plain), (1, true));
        assert_eq!(full.after(1).without("c"), joined(&[("b", None)]));
        assert_eq!(full.after(9), Standbys::default());
    }

    #[test]
    fn a_preferred_candidate_waits_for_no_lower_standby() {
        let full = joined(&[("a", Some("high")), ("b", Some("low")), ("c", None)]);
        assert_eq!(full.before("d", &precedence(Some("high"))), (1, false));
        assert_eq!(full.before("d", &precedence(Some("low"))), (2, false));
        let d = full.with(&Identity::new("d").unwrap(), &precedence(Some("high"))).unwrap();
        assert_eq!(d, joined(&[("a", Some("high")), ("d", Some("high")), ("b", Some("low"))]));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in ".{0,200}", json in r#"[\[\]"a-c,{}:0-9\\]{0,60}"#) {
            for text in [text, json] {
                let list = read(&text);
                prop_assert!(list.len() <= PLACES);
                // What is written again means the same.
                if let Some(again) = list.annotation() {
                    prop_assert_eq!(read(&again), list);
                }
            }
        }
    }
}
