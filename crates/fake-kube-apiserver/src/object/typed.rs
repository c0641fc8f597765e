//! Reads the members of an object by their types, and leaves out empty ones as Go does.

use serde_json::{Map, Value};

use crate::object::time;

/// The members of one object of a body, while they are read into canonical form.
#[derive(Debug)]
pub(crate) struct Typed<'a> {
    path: &'a str,
    /// The members that have not been read.
    pub(crate) given: Map<String, Value>,
    pub(crate) read: Map<String, Value>,
}

/// Which member has the wrong type, for people.
pub(crate) type Mistyped = String;

// === impl Typed ===

impl<'a> Typed<'a> {
    /// `null` counts as an empty object.
    pub(crate) fn new(path: &'a str, value: Value) -> Result<Self, Mistyped> {
        match value {
            Value::Null => Ok(Self { path, given: Map::new(), read: Map::new() }),
            Value::Object(given) => Ok(Self { path, given, read: Map::new() }),
            _ => Err(format!("{path} is not an object")),
        }
    }

    /// Reads the member with `kind`, which returns its canonical form, or none for a member to leave out.
    fn take(
        &mut self,
        member: &str,
        what: &str,
        kind: impl FnOnce(Value) -> Result<Option<Value>, Value>,
    ) -> Result<(), Mistyped> {
        match self.given.remove(member) {
            None | Some(Value::Null) => Ok(()),
            Some(value) => match kind(value) {
                Ok(Some(value)) => {
                    self.read.insert(member.to_owned(), value);
                    Ok(())
                }
                Ok(None) => Ok(()),
                Err(found) => Err(format!("{}.{member} is not {what}: {found}", self.path)),
            },
        }
    }

    /// Reads a string, and keeps an empty one.
    pub(crate) fn text(&mut self, member: &str) -> Result<(), Mistyped> {
        self.take(member, "a string", |it| if it.is_string() { Ok(Some(it)) } else { Err(it) })
    }

    /// Reads a string, and leaves an empty one out.
    pub(crate) fn optional_text(&mut self, member: &str) -> Result<(), Mistyped> {
        self.take(member, "a string", |it| match it {
            Value::String(text) => Ok(Some(text).filter(|it| !it.is_empty()).map(Value::from)),
            other => Err(other),
        })
    }

    pub(crate) fn int32(&mut self, member: &str) -> Result<(), Mistyped> {
        self.take(member, "an int32", |it| match it.as_i64().map(i32::try_from) {
            Some(Ok(_)) => Ok(Some(it)),
            _ => Err(it),
        })
    }

    /// Reads a number, and leaves 0 out unless `zero` is set.
    pub(crate) fn int64(&mut self, member: &str, zero: bool) -> Result<(), Mistyped> {
        self.take(member, "an int64", |it| match it.as_i64() {
            Some(0) if !zero => Ok(None),
            Some(_) => Ok(Some(it)),
            None => Err(it),
        })
    }

    /// Reads a `Time` or a `MicroTime`. In Go the first second of year 1 means no time.
    pub(crate) fn time(&mut self, member: &str, micro: bool) -> Result<(), Mistyped> {
        let what = if micro { "a time such as 2006-01-02T15:04:05.000000Z" } else { "a time" };
        self.take(member, what, |it| {
            let Some(parsed) = it.as_str().and_then(|it| time::parse(it, micro)) else {
                return Err(it);
            };
            let text = if micro { time::micro(parsed) } else { time::seconds(parsed) };
            Ok(Some(if text.starts_with("0001-01-01T00:00:00.000000") { Value::Null } else { text.into() }))
        })
    }

    /// Reads an object of strings. `null` counts as the empty string.
    pub(crate) fn texts_by_name(&mut self, member: &str) -> Result<(), Mistyped> {
        self.take(member, "an object of strings", |mut it| {
            let Some(members) = it.as_object_mut() else { return Err(it) };
            for value in members.values_mut() {
                if value.is_null() {
                    *value = "".into();
                }
            }
            if members.values().all(Value::is_string) { Ok(unless_empty(it)) } else { Err(it) }
        })
    }

    pub(crate) fn texts(&mut self, member: &str) -> Result<(), Mistyped> {
        self.list(member, "a list of strings", Value::is_string)
    }

    pub(crate) fn objects(&mut self, member: &str) -> Result<(), Mistyped> {
        self.list(member, "a list of objects", Value::is_object)
    }

    fn list(&mut self, member: &str, what: &str, item: fn(&Value) -> bool) -> Result<(), Mistyped> {
        self.take(member, what, |it| match it.as_array() {
            Some(items) if items.iter().all(item) => Ok(unless_empty(it)),
            _ => Err(it),
        })
    }
}

fn unless_empty(value: Value) -> Option<Value> {
    let empty = value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty);
    (!empty).then_some(value)
}
