//! From a body to an object in canonical form: the metadata of every kind, and the whole Lease.

use serde_json::{Map, Value};

use crate::object::kinds::known_kind;
use crate::object::members::members;
use crate::object::typed::{Mistyped, Typed};
use crate::path::Collection;
use crate::status::Refusal;

/// How Kubernetes begins the message about a JSON error.
pub(crate) const NO_JSON: &str = "couldn't get version/kind; json parse error: ";

/// An object with the members that the server knows, and those that it does not know.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    object: Value,
    unknown: Vec<Unknown>,
}

/// A member that this server does not know.
#[derive(Debug)]
struct Unknown {
    /// The parent member. None for a member of the object itself.
    parent: Option<&'static str>,
    member: String,
    /// The server drops it without a warning.
    silent: bool,
}

/// Why a body is not an object of its collection.
#[derive(Debug)]
pub(crate) enum Undecodable {
    /// It is not an object of any kind.
    Unrecognized(String),
    /// It is not an object of this kind.
    Mistyped { kind: String, version: String, why: Mistyped },
    /// It has another version of the kind.
    OtherVersion(String),
}

/// What the server does about unknown members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// Reads an object. `null` counts as an object without members.
pub(crate) fn decode(collection: &Collection, value: Value) -> Result<Decoded, Undecodable> {
    let mut members = match value {
        Value::Null => Map::new(),
        Value::Object(members) => members,
        _ => return Err(Undecodable::Unrecognized(format!("{NO_JSON}the body is not an object"))),
    };
    check_kind(collection, &members)?;
    let mut unknown = Vec::new();
    let metadata = metadata(members.remove("metadata").unwrap_or_default(), &mut unknown)
        .map_err(|why| mistyped(collection, why))?;
    if collection.is_lease() {
        let spec = lease_spec(members.remove("spec").unwrap_or_default(), &mut unknown)
            .map_err(|why| mistyped(collection, why))?;
        let others = members.keys().filter(|it| !matches!(it.as_str(), "apiVersion" | "kind"));
        unknown.extend(others.map(|it| Unknown { parent: None, member: it.clone(), silent: false }));
        members.insert("spec".into(), spec.into());
    }
    members.insert("metadata".into(), metadata.into());
    Ok(Decoded { object: members.into(), unknown })
}

/// Checks the kind and version against the collection, if the body has them.
fn check_kind(collection: &Collection, members: &Map<String, Value>) -> Result<(), Undecodable> {
    let text = |member: &str| match members.get(member) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(_) => Err(Undecodable::Unrecognized(format!("{NO_JSON}{member} is not a string"))),
    };
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if version.contains('/') {
        return Err(Undecodable::Unrecognized(format!("unexpected GroupVersion string: {api_version}")));
    }
    let Some(expected) = known_kind(collection) else {
        // A custom kind, which the server does not know.
        return match api_version {
            "" => Ok(()),
            _ if api_version == collection.api_version() => Ok(()),
            _ => Err(Undecodable::OtherVersion(api_version.to_owned())),
        };
    };
    let kind = if kind.is_empty() { expected } else { kind };
    if kind != expected || !api_version.is_empty() && group != collection.group {
        return Err(Undecodable::Mistyped {
            kind: kind.to_owned(),
            version: if version.is_empty() { collection.version.clone() } else { version.to_owned() },
            why: format!("it is a {kind} of \"{api_version}\""),
        });
    }
    if !version.is_empty() && version != collection.version {
        return Err(Undecodable::OtherVersion(api_version.to_owned()));
    }
    Ok(())
}

/// Reads the metadata that every kind has.
fn metadata(value: Value, unknown: &mut Vec<Unknown>) -> Result<Map<String, Value>, Mistyped> {
    let mut typed = Typed::new("metadata", value)?;
    for member in ["name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"] {
        typed.optional_text(member)?;
    }
    typed.int64("generation", false)?;
    typed.int64("deletionGracePeriodSeconds", true)?;
    typed.time("creationTimestamp", false)?;
    typed.time("deletionTimestamp", false)?;
    typed.texts_by_name("labels")?;
    typed.texts_by_name("annotations")?;
    typed.texts("finalizers")?;
    typed.objects("ownerReferences")?;
    typed.objects("managedFields")?;
    Ok(rest("metadata", typed, unknown))
}

/// Reads the spec of a Lease. A server without coordinated leader election checks the types of `strategy` and
/// `preferredHolder`, and drops both.
fn lease_spec(value: Value, unknown: &mut Vec<Unknown>) -> Result<Map<String, Value>, Mistyped> {
    let mut typed = Typed::new("spec", value)?;
    typed.text("holderIdentity")?;
    typed.int32("leaseDurationSeconds")?;
    typed.int32("leaseTransitions")?;
    typed.time("acquireTime", true)?;
    typed.time("renewTime", true)?;
    for member in ["strategy", "preferredHolder"] {
        typed.text(member)?;
        if typed.read.contains_key(member) {
            unknown.push(Unknown { parent: Some("spec"), member: member.to_owned(), silent: true });
        }
    }
    Ok(rest("spec", typed, unknown))
}

/// Returns the members that were read, and adds the others to `unknown`.
fn rest(parent: &'static str, typed: Typed<'_>, unknown: &mut Vec<Unknown>) -> Map<String, Value> {
    let Typed { given, mut read, .. } = typed;
    for (member, value) in given {
        unknown.push(Unknown { parent: Some(parent), member: member.clone(), silent: false });
        read.insert(member, value);
    }
    read
}

fn mistyped(collection: &Collection, why: Mistyped) -> Undecodable {
    let kind = known_kind(collection).unwrap_or(&collection.resource).to_owned();
    Undecodable::Mistyped { kind, version: collection.version.clone(), why }
}

// === impl Decoded ===

impl Decoded {
    pub(crate) fn resource_version(&self) -> Option<&str> {
        self.object["metadata"]["resourceVersion"].as_str()
    }

    /// Returns the object without its unknown members, and the warnings about them; or the refusal.
    ///
    /// A member that the existing object has counts as known. Only a test can have stored it, to play a server
    /// of another version.
    pub(crate) fn validated(
        mut self,
        collection: &Collection,
        validation: FieldValidation,
        existing: Option<&Value>,
    ) -> Result<(Value, Vec<String>), Undecodable> {
        let mut said = Vec::new();
        for Unknown { parent, member, silent } in self.unknown {
            let there = existing.map(|it| parent.map_or(it, |parent| &it[parent]));
            if there.is_some_and(|it| it.get(&member).is_some()) {
                continue;
            }
            let within = match parent {
                Some(parent) => &mut self.object[parent],
                None => &mut self.object,
            };
            members(within).remove(&member);
            if !silent {
                let path = parent.map_or_else(|| member.clone(), |parent| format!("{parent}.{member}"));
                said.push(format!("unknown field \"{path}\""));
            }
        }
        match validation {
            FieldValidation::Ignore => Ok((self.object, Vec::new())),
            FieldValidation::Strict if !said.is_empty() => {
                Err(mistyped(collection, format!("strict decoding error: {}", said.join(", "))))
            }
            FieldValidation::Warn | FieldValidation::Strict => Ok((self.object, said)),
        }
    }

    /// The first unknown member that the server warns about.
    pub(crate) fn first_unknown(&self) -> Option<String> {
        let unknown = self.unknown.iter().find(|it| !it.silent)?;
        Some(unknown.parent.map_or_else(|| unknown.member.clone(), |it| format!("{it}.{}", unknown.member)))
    }
}

// === impl Undecodable ===

impl Undecodable {
    /// The server's answer to the body.
    pub(crate) fn refusal(&self, collection: &Collection, body: &[u8]) -> Refusal {
        let expected = known_kind(collection).unwrap_or(&collection.resource);
        match self {
            Self::Unrecognized(why) => unrecognized(expected, why, body),
            Self::Mistyped { .. } => Refusal::bad_request(self.to_string()),
            Self::OtherVersion(found) => Refusal::bad_request(format!(
                "the API version in the data ({found}) does not match the expected API version ({})",
                collection.api_version(),
            )),
        }
    }
}

impl std::fmt::Display for Undecodable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unrecognized(why) => f.write_str(why),
            Self::Mistyped { kind, version, why } => {
                write!(f, "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}")
            }
            Self::OtherVersion(found) => write!(f, "no kind is registered for version \"{found}\""),
        }
    }
}

/// The refusal of a body that is not an object at all.
fn unrecognized(expected: &str, why: &str, body: &[u8]) -> Refusal {
    let begin = &body[..body.len().min(30)];
    let more = if begin.len() < body.len() { " ..." } else { "" };
    let shown = match begin.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(begin).into_owned(),
        Some(_) => begin.iter().fold(String::new(), |text, it| text + &format!("{it:02x}")),
    };
    Refusal::bad_request(format!(
        "the object provided is unrecognized (must be of type {expected}): {why} ({shown}{more})"
    ))
}
