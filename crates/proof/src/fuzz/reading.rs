//! How an API server reads a request: `RequestInfoFactory.NewRequestInfo` of `k8s.io/apiserver`, line by line, slow and
//! simple. It uses nothing of the crate's own parser. `tests/attack` compares that parser with the Go code itself.

use std::borrow::Cow;

/// What the server makes of a path. Missing parts are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reading {
    pub(super) is_resource: bool,
    pub(super) verb: String,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) namespace: String,
    pub(super) resource: String,
    pub(super) subresource: String,
    pub(super) name: String,
    /// The segments from the resource on.
    pub(super) parts: usize,
    /// What a server behind this one may read in the path, if that is something else.
    pub(super) others: Vec<Self>,
}

impl Reading {
    /// Reads a path as it is in a URI. None if the server refuses it.
    pub(super) fn of(method: &str, path: &str) -> Option<Self> {
        let path = decoded(path)?;
        let reading = Self::of_decoded(method, &path)?;
        let others = [clean(&path), again(&path), without_parameters(&path), path.replace('\\', "/")];
        let others = others
            .into_iter()
            .filter(|other| *other != path)
            .filter_map(|other| Self::of_decoded(method, &other));
        let others = others.filter(|other| other.target() != reading.target()).collect();
        Some(Self { others, ..reading })
    }

    fn of_decoded(method: &str, path: &str) -> Option<Self> {
        let mut reading = Self { verb: method.to_lowercase(), ..Self::default() };
        let path = path.trim_matches('/');
        let mut parts: Vec<&str> = if path.is_empty() { Vec::new() } else { path.split('/').collect() };
        if parts.len() < 3 || !["api", "apis"].contains(&parts[0]) {
            return Some(reading);
        }
        if parts.remove(0) == "apis" {
            if parts.len() < 3 {
                return Some(reading);
            }
            parts.remove(0).clone_into(&mut reading.group);
        }
        reading.is_resource = true;
        parts.remove(0).clone_into(&mut reading.version);
        if ["proxy", "watch"].contains(&parts[0]) {
            if parts.len() < 2 {
                return None;
            }
            parts.remove(0).clone_into(&mut reading.verb);
        } else {
            let verb = match method {
                "POST" => "create",
                "GET" | "HEAD" => "get",
                "PUT" => "update",
                "PATCH" => "patch",
                "DELETE" => "delete",
                _ => "",
            };
            verb.clone_into(&mut reading.verb);
        }
        if parts[0] == "namespaces" && parts.len() > 1 {
            parts[1].clone_into(&mut reading.namespace);
            if parts.len() > 2 && !["status", "finalize"].contains(&parts[2]) {
                parts.drain(..2);
            }
        }
        reading.parts = parts.len();
        let part = |index: usize| parts.get(index).copied().unwrap_or_default().to_owned();
        (reading.resource, reading.name) = (part(0), part(1));
        if reading.verb != "proxy" {
            reading.subresource = part(2);
        }
        if reading.name.is_empty() {
            match &*reading.verb {
                // Or `watch`, by the query. Both are reads.
                "get" => "list".clone_into(&mut reading.verb),
                "delete" => "deletecollection".clone_into(&mut reading.verb),
                _ => {}
            }
        }
        Some(reading)
    }

    fn target(&self) -> [&str; 5] {
        [&self.verb, &self.group, &self.namespace, &self.resource, &self.subresource]
    }

    /// A subresource on which even `GET` runs a command.
    pub(super) fn is_command(&self) -> bool {
        ["exec", "attach", "portforward"].contains(&&*self.subresource)
    }

    /// Whether a kube-apiserver surely answers by itself. Other versions may be aggregated APIs.
    fn may_be_built_in(&self) -> bool {
        let group = !self.group.contains('.') || self.group.ends_with(".k8s.io");
        group && (self.version == "v1" || self.group == "autoscaling" && self.version == "v2")
    }

    /// Whether the server, or a server behind it, could leave HTTP for another protocol.
    pub(super) fn grants(&self, upgrade: bool) -> bool {
        let plain = self.is_resource
            && self.may_be_built_in()
            && !self.is_command()
            && self.subresource != "proxy"
            && self.verb != "proxy";
        upgrade && !plain
    }

    /// Whether the request changes nothing, whatever server is behind this one.
    pub(super) fn is_read(&self, method: &str, upgrade: bool) -> bool {
        if !self.is_resource {
            return ["GET", "HEAD", "OPTIONS"].contains(&method) && !upgrade;
        }
        ["GET", "HEAD"].contains(&method)
            && ["get", "list", "watch"].contains(&&*self.verb)
            && !self.is_command()
            && !self.grants(upgrade)
            // A server behind a proxy may read the path as it likes.
            && (self.subresource == "proxy"
                || self.others.iter().all(|other| other.verb != "proxy" && !other.is_command()))
    }

    /// Whether every reader of the path reads the same target.
    pub(super) fn is_the_only_one(&self) -> bool {
        self.subresource == "proxy"
            || self.parts <= 3 && self.others.iter().all(|other| other.target()[1..] == self.target()[1..])
    }
}

/// Decodes a path as Go does. None if an escape is broken.
fn decoded(text: &str) -> Option<String> {
    let bytes = bytes(text)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let digits = piece.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(&piece.as_bytes()[2..]);
    }
    Some(bytes)
}

/// The values of `key` in a query, as Go's `url.ParseQuery` reads them.
pub(super) fn values(query: &str, key: &str) -> Vec<String> {
    let mut pairs: Vec<&str> = query.split('&').collect();
    if pairs.len() > 10_000 {
        return Vec::new();
    }
    pairs.retain(|pair| !pair.contains(';'));
    let decoded = |text: &str| decoded(&text.replace('+', " "));
    let read = |pair: &&str| {
        let (key, value) = pair.split_once('=').unwrap_or((*pair, ""));
        Some((decoded(key)?, decoded(value)?))
    };
    pairs.iter().filter_map(read).filter(|(it, _)| it == key).map(|(_, value)| value).collect()
}

/// Go's `path.Clean`.
fn clean(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

/// A server that decodes the path twice.
fn again(path: &str) -> String {
    decoded(path).unwrap_or_else(|| path.to_owned())
}

/// A server that takes a semicolon for the beginning of parameters.
fn without_parameters(path: &str) -> String {
    let segments: Vec<&str> = path.split('/').map(|it| it.split(';').next().unwrap_or_default()).collect();
    segments.join("/")
}

/// A part of the crate's own reading, decoded for a comparison.
pub(super) fn lossy(part: &str) -> Cow<'_, str> {
    bytes(part).map_or(Cow::Borrowed(part), |bytes| Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
}
