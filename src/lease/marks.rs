//! What a new Lease gets besides its holder: labels and an owner.

use crate::{
    invalid::ErrInvalid,
    object_names::{is_label_value, is_subdomain},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The labels and the owner of a Lease that this process creates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) owner: Option<OwnerReference>,
}

impl Marks {
    /// # Errors
    /// If the API server would refuse a Lease with these marks. Then no candidate could create the Lease.
    pub(crate) fn validate(&self) -> Result<(), ErrInvalid> {
        for (name, value) in &self.labels {
            let (prefix, short) = name.split_once('/').map_or((None, &**name), |(p, short)| (Some(p), short));
            if prefix.is_some_and(|prefix| !is_subdomain(prefix))
                || short.is_empty()
                || !is_label_value(short)
            {
                let allowed = "1 to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends, and before it \
                               perhaps a DNS name and '/', as app.kubernetes.io/name";
                return Err(ErrInvalid::of_text("invalid name of a label of the lease:", name, allowed));
            }
            if !is_label_value(value) {
                let setting = format!("invalid value of the label {name} of the lease:");
                let allowed =
                    "up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends";
                return Err(ErrInvalid::of_text(&setting, value, allowed));
            }
        }
        let Some(owner) = &self.owner else { return Ok(()) };
        let parts = [&owner.api_version, &owner.kind, &owner.name, &owner.uid];
        let (_, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
        let is_event = owner.api_version == "v1" && owner.kind == "Event";
        if parts.iter().any(|part| part.is_empty()) || version.is_empty() || version.contains('/') || is_event
        {
            let allowed = "a reference with an API version, a kind (not an Event), a name and a uid, as `owner_ref` of kube's \
                           `Resource` makes it of an object that the API server has answered";
            return Err(ErrInvalid::new("invalid owner of the lease:", parts, allowed));
        }
        Ok(())
    }

    /// What the metadata of a new Lease gets.
    pub(crate) fn metadata(&self) -> Map<String, Value> {
        let labels = (!self.labels.is_empty()).then(|| ("labels".to_owned(), json!(self.labels)));
        let owners = self.owner.as_ref().map(|owner| ("ownerReferences".to_owned(), json!([owner])));
        labels.into_iter().chain(owners).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, value: &str) -> Option<String> {
        let labels = [(name.to_owned(), value.to_owned())].into();
        Marks { labels, owner: None }.validate().err().map(|error| error.to_string())
    }

    #[test]
    fn labels_that_the_api_server_refuses_are_refused() {
        for (name, value) in [
            ("app", ""),
            ("App_1.x-y", "Web_1.x-y"),
            ("app.kubernetes.io/name", "a"),
            (&"x".repeat(63), &"y".repeat(63)),
        ] {
            assert_eq!(refused(name, value), None, "{name}={value}");
        }
        for name in ["", "/app", "a/", "a b", "-a", "a.", "A.b/app", "a/b/c", "ä", &"x".repeat(64)] {
            let error = refused(name, "a").expect(name);
            assert!(
                error.starts_with("invalid name of a label of the lease: ")
                    && error.contains("allowed: 1 to 63"),
                "{error}"
            );
        }
        for value in ["a b", "-a", "a_", "a/b", "ä", &"x".repeat(64)] {
            let error = refused("app", value).expect(value);
            assert!(error.starts_with("invalid value of the label app of the lease: "), "{error}");
        }
    }

    #[test]
    fn owners_that_the_api_server_refuses_are_refused() {
        let of = |uid: &str| OwnerReference {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            name: "my-controller".into(),
            uid: uid.into(),
            ..OwnerReference::default()
        };
        let marks = |owner| Marks { owner: Some(owner), ..Marks::default() };
        assert!(marks(of("u")).validate().is_ok());
        for (api_version, kind) in
            [("apps/", "Deployment"), ("apps/v1/x", "Deployment"), ("/", "Deployment"), ("v1", "Event")]
        {
            let owner = OwnerReference { api_version: api_version.into(), kind: kind.into(), ..of("u") };
            assert!(marks(owner).validate().is_err(), "{api_version} {kind}");
        }
        for (api_version, kind) in [("v1", "Pod"), ("events.k8s.io/v1", "Event")] {
            let owner = OwnerReference { api_version: api_version.into(), kind: kind.into(), ..of("u") };
            assert!(marks(owner).validate().is_ok(), "{api_version} {kind}");
        }
        let error = marks(of("")).validate().unwrap_err().to_string();
        assert!(
            error.starts_with("invalid owner of the lease: ") && error.contains("my-controller"),
            "{error}"
        );
    }
}
