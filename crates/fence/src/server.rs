//! Reads and writes the two objects, as JSON, so that fields which this version does not know are seen too.

use crate::error::ErrFence;
use http::{Method, Request, header::CONTENT_TYPE};
use kube_leader_gate::{
    extension::without_secrets,
    kube_client::{Client, Error},
    lease::LeaseName,
};
use serde_json::{Value, json};

/// The label of objects that this crate has made, and its value.
pub(crate) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "kube-leader-gate");
/// The name under which this crate owns fields.
const FIELD_MANAGER: &str = "kube-leader-gate";
const GROUP: &str = "admissionregistration.k8s.io";

/// The two kinds of a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Policy,
    Binding,
}

impl Kind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "ValidatingAdmissionPolicy",
            Self::Binding => "ValidatingAdmissionPolicyBinding",
        }
    }

    const fn resource(self) -> &'static str {
        match self {
            Self::Policy => "validatingadmissionpolicies.admissionregistration.k8s.io",
            Self::Binding => "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        }
    }

    fn path(self) -> String {
        let plural = self.resource().split('.').next().unwrap_or_default();
        format!("/apis/{GROUP}/v1/{plural}")
    }
}

/// Whether the API server knows the two kinds.
pub(crate) async fn check_version(client: &Client) -> Result<(), ErrFence> {
    let what = "find out what the API server offers";
    let path = format!("/apis/{GROUP}/v1");
    let known = match send(client, Method::GET, &path, None).await {
        Ok(list) => list["resources"].as_array().is_some_and(|resources| {
            resources.iter().any(|resource| resource["name"] == "validatingadmissionpolicybindings")
        }),
        Err(Error::Api(status)) if status.code == 404 => false,
        Err(source) => return Err(ErrFence::Request { what: what.to_owned(), source }),
    };
    if known { Ok(()) } else { Err(ErrFence::TooOld) }
}

/// The object, if it exists, also if another tool has made it.
pub(crate) async fn get(client: &Client, kind: Kind, name: &str) -> Result<Option<Value>, ErrFence> {
    match send(client, Method::GET, &format!("{}/{name}", kind.path()), None).await {
        Err(Error::Api(status)) if status.code == 404 => Ok(None),
        outcome => outcome.map(Some).map_err(|error| failed("get", kind, error)),
    }
}

/// An error if this crate has not made the object.
pub(crate) fn check_own(kind: Kind, object: &Value) -> Result<(), ErrFence> {
    let manager = object["metadata"]["labels"][MANAGED_BY.0].as_str();
    if manager == Some(MANAGED_BY.1) {
        return Ok(());
    }
    let (name, manager) = (name(object), manager.map(str::to_owned));
    Err(ErrFence::Foreign { kind: kind.as_str(), name, manager })
}

pub(crate) fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// The Lease, if it exists.
pub(crate) async fn lease(client: &Client, name: &LeaseName) -> Result<Option<Value>, ErrFence> {
    let (namespace, lease) = (name.namespace(), name.name());
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{lease}");
    match send(client, Method::GET, &path, None).await {
        Ok(lease) => Ok(Some(lease)),
        Err(Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(refused("get", "Lease", "leases.coordination.k8s.io", error)),
    }
}

/// All objects of this kind in the cluster.
pub(crate) async fn list(client: &Client, kind: Kind) -> Result<Vec<Value>, ErrFence> {
    let mut list =
        send(client, Method::GET, &kind.path(), None).await.map_err(|error| failed("list", kind, error))?;
    Ok(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
}

/// The answer to a question about permissions.
pub(crate) async fn review(client: &Client, resource: &'static str, spec: &Value) -> Result<Value, ErrFence> {
    let path = format!("/apis/authorization.k8s.io/v1/{}", resource.split('.').next().unwrap_or_default());
    let answer = send(client, Method::POST, &path, Some(&json!({ "spec": spec }))).await;
    Ok(answer.map_err(|error| refused("create", resource, resource, error))?["status"].take())
}

/// Makes the cluster's object say what `wanted` says. `found` is the object as it was read: if it has changed since,
/// nothing happens.
pub(crate) async fn apply(
    client: &Client,
    kind: Kind,
    mut wanted: Value,
    found: Option<&Value>,
) -> Result<Value, ErrFence> {
    let path = format!("{}/{}?fieldManager={FIELD_MANAGER}", kind.path(), name(&wanted));
    let Some(found) = found else {
        // Another client may create the same meanwhile. If it creates something else, that is a conflict.
        let created = send(client, Method::PATCH, &path, Some(&wanted)).await;
        return created.map_err(|error| failed("patch", kind, error));
    };
    check_own(kind, found)?;
    check_stays(kind, found)?;
    // The whole spec: server-side apply keeps entries of other managers, and a match condition would exempt more.
    let mut object = found.clone();
    object["spec"] = wanted["spec"].take();
    for part in ["labels", "annotations"] {
        for (key, value) in wanted["metadata"][part].as_object().into_iter().flatten() {
            object["metadata"][part][key] = value.clone();
        }
    }
    send(client, Method::PUT, &path, Some(&object)).await.map_err(|error| failed("update", kind, error))
}

/// Whether the object is there only until its finalizers are gone.
pub(crate) fn is_ending(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// An error if the object is ending.
pub(crate) fn check_stays(kind: Kind, object: &Value) -> Result<(), ErrFence> {
    if !is_ending(object) {
        return Ok(());
    }
    let metadata = &object["metadata"];
    let finalizers = metadata["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let finalizers = finalizers.collect::<Vec<_>>().join(", ");
    Err(ErrFence::Ending { kind: kind.as_str(), name: name(object), finalizers })
}

/// Deletes the object, if it is still the one that was read.
pub(crate) async fn delete(client: &Client, kind: Kind, found: &Value) -> Result<(), ErrFence> {
    let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions",
                          "preconditions": { "uid": found["metadata"]["uid"] } });
    let path = format!("{}/{}", kind.path(), name(found));
    match send(client, Method::DELETE, &path, Some(&options)).await {
        // It is gone, or there until its finalizers are.
        Ok(answer) => check_stays(kind, &answer),
        Err(Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(failed("delete", kind, error)),
    }
}

pub(crate) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, Error> {
    let patches = method == Method::PATCH;
    let content = if patches { "application/apply-patch+yaml" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, content);
    let body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
    client.request(request.body(body).map_err(Error::HttpError)?).await.map_err(without_secrets)
}

fn failed(verb: &'static str, kind: Kind, error: Error) -> ErrFence {
    refused(verb, kind.as_str(), kind.resource(), error)
}

fn refused(verb: &'static str, kind: &'static str, resource: &'static str, error: Error) -> ErrFence {
    match error {
        Error::Api(status) if status.code == 403 => {
            ErrFence::Forbidden { verb, resource, message: status.message.clone() }
        }
        Error::Api(status) if status.code == 409 || status.code == 404 && verb == "update" => {
            ErrFence::Changed { kind, message: status.message.clone() }
        }
        source => ErrFence::Request { what: format!("{verb} the {kind}"), source },
    }
}
