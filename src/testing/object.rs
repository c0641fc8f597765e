//! One stored object, and the members of `metadata` that the server minds.

use std::fmt::Write as _;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::path::Collection;

/// Where an object is kept. The namespace of a cluster-wide object is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) collection: Collection,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// An object at one version, serialized once for everybody who reads it.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) value: Value,
    pub(super) bytes: Bytes,
}

/// Makes uids and generated names. Not random: the same requests get the same ones.
#[derive(Debug, Default)]
pub(super) struct Ids(u64);

// === impl Object ===

impl Object {
    pub(super) fn new(value: Value) -> Self {
        let bytes = Bytes::from(value.to_string());
        Self { value, bytes }
    }

    pub(super) fn uid(&self) -> &str {
        text(&self.value, "uid")
    }

    pub(super) fn version(&self) -> &str {
        text(&self.value, "resourceVersion")
    }
}

/// A string of `metadata`; empty when it is absent or something else.
pub(super) fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    object["metadata"][member].as_str().unwrap_or_default()
}

/// The `metadata` of an object, made when it is absent or not an object.
pub(super) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    let metadata = members(object).entry("metadata").or_insert(Value::Null);
    members(metadata)
}

/// The members of a value, which becomes an object when it is something else.
pub(super) fn members(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(members) => members,
        _ => unreachable!("made an object just above"),
    }
}

pub(super) fn set_version(object: &mut Value, version: u64) {
    metadata(object).insert("resourceVersion".into(), version.to_string().into());
}

/// Takes `from`'s member, or removes it.
pub(super) fn copy_member(to: &mut Map<String, Value>, from: &Value, member: &str) {
    match from.get(member) {
        Some(value) => to.insert(member.into(), value.clone()),
        None => to.remove(member),
    };
}

// === impl Ids ===

impl Ids {
    /// splitmix64: well spread, never the same twice.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        it ^ (it >> 31)
    }

    /// In the form of a version 4 UUID.
    pub(super) fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | (low >> 50),
            low & 0xffff_ffff_ffff,
        )
    }

    /// `generateName` and five characters from Kubernetes' own alphabet.
    pub(super) fn name(&mut self, prefix: &str) -> String {
        const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        let (mut name, mut bits) = (prefix.to_owned(), self.next());
        for _ in 0..5 {
            let index = usize::try_from(bits % 27).unwrap_or_default();
            // Writing to a string does not fail.
            let _ = name.write_char(char::from(ALPHABET[index]));
            bits /= 27;
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_form_of_the_real_ones() {
        let mut ids = Ids::default();
        let (first, second) = (ids.uid(), ids.uid());
        assert_ne!(first, second);
        let lengths: Vec<_> = first.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        let name = ids.name("a-");
        assert!(name.starts_with("a-") && name.len() == 7, "{name}");
    }
}
