//! What the server refuses in a new Event of `events.k8s.io/v1`. The messages use the field names of the core version.

use serde_json::Value;

use crate::cause::Cause;
use crate::object::members::text;
use crate::object::names::qualified;
use crate::path::Collection;
use crate::status::Refusal;

/// Kubernetes' limit on reporting instance, action and reason.
const WORD_LIMIT: usize = 128;
const NOTE_LIMIT: usize = 1024;

/// Checks a new Event. Like the real server, it does so after the check of the metadata, and names no group.
pub(crate) fn created(collection: &Collection, event: &Value) -> Result<(), Refusal> {
    let Collection { group, version, resource } = collection;
    if (group.as_str(), version.as_str(), resource.as_str()) != ("events.k8s.io", "v1", "events") {
        return Ok(());
    }
    let timed = !event["eventTime"].is_null();
    let mut causes = Vec::from_iter(placed(event, timed));
    if timed {
        causes.extend(reported(event));
    } else {
        causes.push(Cause::required("eventTime", ""));
    }
    let kind = said(&event["type"]);
    if !["Normal", "Warning"].contains(&kind) {
        causes.push(Cause::invalid("type", &"".into(), &format!("has invalid value: {kind}")));
    }
    if causes.is_empty() {
        return Ok(());
    }
    let internal = Collection { group: String::new(), ..collection.clone() };
    Err(Refusal::invalid("Event", &internal, text(event, "name"), &causes))
}

/// Checks the namespace of the regarded object against the Event's own.
fn placed(event: &Value, timed: bool) -> Option<Cause> {
    let (own, regarding) = (said(&event["metadata"]["namespace"]), said(&event["regarding"]["namespace"]));
    let fits = match (timed, regarding) {
        (true, "") => ["default", "kube-system"].contains(&own),
        (true, _) => true,
        (false, "") => own == "default",
        (false, _) => own == regarding,
    };
    let why = "does not match event.namespace";
    (!fits).then(|| Cause::invalid("involvedObject.namespace", &regarding.into(), why))
}

/// Checks the controller, its instance, the action, the reason and the note.
fn reported(event: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let controller = said(&event["reportingController"]);
    let wrong = qualified(controller);
    causes.extend(controller.is_empty().then(|| Cause::required("reportingController", "")));
    causes.extend(wrong.iter().map(|why| Cause::invalid("reportingController", &controller.into(), why)));
    for field in ["reportingInstance", "action", "reason"] {
        let text = said(&event[field]);
        causes.extend(text.is_empty().then(|| Cause::required(field, "")));
        causes.extend(too_long(field, text, WORD_LIMIT));
    }
    causes.extend(too_long("message", said(&event["note"]), NOTE_LIMIT));
    causes
}

fn too_long(field: &'static str, text: &str, limit: usize) -> Option<Cause> {
    let why = format!("can have at most {limit} characters");
    (text.len() > limit).then(|| Cause::invalid(field, &"".into(), &why))
}

fn said(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
