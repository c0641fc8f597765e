//! Which resource a path names, as the API server's `RequestInfo` reads it.

use std::fmt;

/// One collection of objects. Each version of a group has its own collection: the server does not convert.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Collection {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
}

/// What the path of a resource request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) collection: Collection,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// The path has the old `/watch/` prefix.
    pub(crate) legacy_watch: bool,
}

/// What a path names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Route {
    Resource(Target),
    /// A path that names no resource, decoded, without slashes at both ends.
    Other(String),
    /// A path that the server does not serve.
    #[default]
    Unknown,
}

// === impl Collection ===

impl Collection {
    /// `v1`, `coordination.k8s.io/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    pub(crate) fn is_lease(&self) -> bool {
        self.group == "coordination.k8s.io" && self.resource == "leases"
    }

    /// Whether the group is one of custom resources. The built-in groups are listed here or end in `.k8s.io`.
    pub(crate) fn is_custom(&self) -> bool {
        !matches!(self.group.as_str(), "" | "apps" | "autoscaling" | "batch" | "extensions" | "policy")
            && !self.group.ends_with(".k8s.io")
    }
}

/// `configmaps`, `leases.coordination.k8s.io`: as error messages name a resource.
impl fmt::Display for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

// === impl Route ===

impl Route {
    /// Reads a percent-encoded path. It ignores slashes at the end. A path with empty or dot segments is
    /// [`Route::Unknown`].
    pub(crate) fn parse(path: &str) -> Self {
        let Ok(decoded) = percent_encoding::percent_decode_str(path).decode_utf8() else {
            return Self::Unknown;
        };
        let Some(relative) = decoded.strip_prefix('/') else {
            return Self::Unknown;
        };
        let relative = relative.trim_end_matches('/');
        let parts: Vec<&str> = relative.split('/').collect();
        if relative.is_empty() {
            return Self::Other(String::new());
        }
        if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
            return Self::Unknown;
        }
        let (group, version, rest) = match parts.as_slice() {
            ["api", "v1", rest @ ..] => ("", "v1", rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            ["api", _, ..] => return Self::Unknown,
            _ => return Self::Other(relative.to_owned()),
        };
        if rest.is_empty() {
            return Self::Other(relative.to_owned());
        }
        Target::parse(group, version, rest).map_or(Self::Unknown, Self::Resource)
    }
}

// === impl Target ===

impl Target {
    fn parse(group: &str, version: &str, rest: &[&str]) -> Option<Self> {
        let (legacy_watch, rest) = match rest {
            ["watch", rest @ ..] => (true, rest),
            _ => (false, rest),
        };
        let (namespace, rest) = match rest {
            // `namespaces/x/status` and `namespaces/x/finalize` belong to the Namespace object itself.
            ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
            _ => (None, rest),
        };
        let (resource, name, subresource) = match rest {
            [resource] => (*resource, None, None),
            [resource, name] => (*resource, Some(*name), None),
            [resource, name, subresource] => (*resource, Some(*name), Some(*subresource)),
            _ => return None,
        };
        Some(Self {
            collection: Collection {
                group: group.into(),
                version: version.into(),
                resource: resource.into(),
            },
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            subresource: subresource.map(str::to_owned),
            legacy_watch,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> Target {
        match Route::parse(path) {
            Route::Resource(target) => target,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn names_the_parts_of_a_namespaced_object() {
        let it = target("/apis/coordination.k8s.io/v1/namespaces/ns/leases/a/status");
        assert_eq!(it.collection.to_string(), "leases.coordination.k8s.io");
        assert_eq!(it.collection.api_version(), "coordination.k8s.io/v1");
        assert_eq!((it.namespace.as_deref(), it.name.as_deref()), (Some("ns"), Some("a")));
        assert_eq!(it.subresource.as_deref(), Some("status"));
    }

    #[test]
    fn a_namespace_is_an_object_too() {
        let it = target("/api/v1/namespaces/ns");
        assert_eq!((it.collection.resource.as_str(), it.name.as_deref()), ("namespaces", Some("ns")));
        assert_eq!(target("/api/v1/namespaces/ns/status").subresource.as_deref(), Some("status"));
        assert_eq!(target("/api/v1/namespaces/ns/pods").namespace.as_deref(), Some("ns"));
    }

    #[test]
    fn decodes_and_ignores_slashes_at_the_end() {
        assert_eq!(target("/api%2Fv1/config%6Daps/a//"), target("/api/v1/configmaps/a"));
        assert!(target("/api/v1/watch/configmaps").legacy_watch);
    }

    #[test]
    fn odd_paths_are_not_found() {
        for path in [
            "//api/v1/pods",
            "/api/v1//pods",
            "/api/v1/../pods",
            "/api/v2/pods",
            "*",
            "",
            "/%ff",
            "/api/v1/a/b/c/d",
        ] {
            assert_eq!(Route::parse(path), Route::Unknown, "{path}");
        }
        assert_eq!(Route::parse("/apis/apps/v1/"), Route::Other("apis/apps/v1".into()));
        assert_eq!(Route::parse("/"), Route::Other(String::new()));
    }
}
