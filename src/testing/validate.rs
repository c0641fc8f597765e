//! What the server refuses in an object: little, but the Lease as the real one does.

use serde_json::Value;

use super::cause::Cause;
use super::kinds::kind_of;
use super::object::text;
use super::path::Collection;
use super::status::Refusal;

const NAME_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// The shape that Kubernetes' decoder demands: an object, of this API version, whose fields have the right
/// types.
pub(super) fn shape(collection: &Collection, object: &Value) -> Result<(), Refusal> {
    if !object.is_object() {
        return Err(Refusal::bad_request(
            "couldn't get version/kind; json parse error: the body is not an object",
        ));
    }
    let expected = collection.api_version();
    match &object["apiVersion"] {
        Value::Null => {}
        Value::String(found) if found.is_empty() || *found == expected => {}
        found => {
            let found = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
            return Err(Refusal::bad_request(format!(
                "the API version in the data ({found}) does not match the expected API version ({expected})"
            )));
        }
    }
    let metadata = &object["metadata"];
    let strings =
        |it: &Value| it.is_null() || it.as_object().is_some_and(|it| it.values().all(Value::is_string));
    let good = (metadata.is_null() || metadata.is_object())
        && ["name", "generateName", "namespace", "uid", "resourceVersion"]
            .iter()
            .all(|it| optional_text(&metadata[it]))
        && strings(&metadata["labels"])
        && strings(&metadata["annotations"]);
    if !good {
        return Err(unreadable(collection, object, "metadata has a field of the wrong type"));
    }
    let version = text(object, "resourceVersion");
    if !version.is_empty() && version.parse::<u64>().is_err() {
        return Err(Refusal::bad_request(format!("invalid resource version \"{version}\"")));
    }
    if collection.is_lease() { lease_shape(collection, object) } else { Ok(()) }
}

/// The values that the server's validation demands.
pub(super) fn values(collection: &Collection, object: &Value) -> Result<(), Refusal> {
    let name = text(object, "name");
    let mut causes = Vec::new();
    // Names of roles and bindings are free.
    if collection.group != "rbac.authorization.k8s.io" && !is_subdomain(name) {
        causes.push(Cause::invalid("metadata.name", &object["metadata"]["name"], NAME_RULE));
    }
    if collection.is_lease() {
        let spec = &object["spec"];
        if spec["leaseDurationSeconds"].as_i64().is_some_and(|it| it <= 0) {
            let value = &spec["leaseDurationSeconds"];
            causes.push(Cause::invalid("spec.leaseDurationSeconds", value, "must be greater than 0"));
        }
        if spec["leaseTransitions"].as_i64().is_some_and(|it| it < 0) {
            let value = &spec["leaseTransitions"];
            causes.push(Cause::invalid("spec.leaseTransitions", value, "must be greater than or equal to 0"));
        }
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid(&kind_of(collection, object), collection, name, &causes))
}

fn lease_shape(collection: &Collection, object: &Value) -> Result<(), Refusal> {
    let spec = &object["spec"];
    let int32 = |it: &Value| it.is_null() || it.as_i64().is_some_and(|it| i32::try_from(it).is_ok());
    let why = if !spec.is_null() && !spec.is_object() {
        "spec is not an object".to_owned()
    } else if let Some(field) =
        ["leaseDurationSeconds", "leaseTransitions"].into_iter().find(|it| !int32(&spec[*it]))
    {
        format!("spec.{field} is not an int32")
    } else if !optional_text(&spec["holderIdentity"]) {
        "spec.holderIdentity is not a string".to_owned()
    } else if let Some(field) = ["acquireTime", "renewTime"].into_iter().find(|it| !is_micro_time(&spec[*it]))
    {
        format!("parsing time {} of spec.{field} as \"2006-01-02T15:04:05.000000Z07:00\"", spec[field])
    } else {
        return Ok(());
    };
    Err(unreadable(collection, object, &why))
}

fn unreadable(collection: &Collection, object: &Value, why: &str) -> Refusal {
    let kind = kind_of(collection, object);
    let version = &collection.version;
    Refusal::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"))
}

fn optional_text(value: &Value) -> bool {
    value.is_null() || value.is_string()
}

/// Kubernetes reads a `MicroTime` with exactly six digits after the point.
fn is_micro_time(value: &Value) -> bool {
    let Value::String(text) = value else {
        return value.is_null();
    };
    let digits =
        text.split_once('.').map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
    digits == 6 && text.parse::<jiff::Timestamp>().is_ok()
}

fn is_subdomain(name: &str) -> bool {
    let label = |it: &str| {
        let bytes = it.as_bytes();
        let alphanumeric = |it: &u8| it.is_ascii_lowercase() || it.is_ascii_digit();
        bytes.first().is_some_and(alphanumeric)
            && bytes.last().is_some_and(alphanumeric)
            && bytes.iter().all(|it| alphanumeric(it) || *it == b'-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn leases() -> Collection {
        Collection { group: "coordination.k8s.io".into(), version: "v1".into(), resource: "leases".into() }
    }

    #[test]
    fn names() {
        for good in ["a", "a.b-c.9", &"a".repeat(253)] {
            assert!(is_subdomain(good), "{good}");
        }
        for bad in ["", "A", "a_b", "-a", "a.", "a..b", "é", &"a".repeat(254)] {
            assert!(!is_subdomain(bad), "{bad}");
        }
    }

    #[test]
    fn micro_times() {
        for good in
            [json!(null), json!("2026-01-02T03:04:05.000006Z"), json!("2026-01-02T03:04:05.000006+02:00")]
        {
            assert!(is_micro_time(&good), "{good}");
        }
        for bad in [
            "",
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.000006789Z",
            "2026-13-02T03:04:05.000006Z",
            "x.123456",
        ] {
            assert!(!is_micro_time(&json!(bad)), "{bad}");
        }
    }

    #[test]
    fn a_lease_is_refused_as_the_real_server_refuses_it() {
        let lease = json!({
            "kind": "Lease", "metadata": {"name": "a"}, "spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1},
        });
        let refusal = values(&leases(), &lease).unwrap_err();
        assert_eq!(refusal.code(), 422);
        assert_eq!(
            refusal.message(),
            "Lease.coordination.k8s.io \"a\" is invalid: [spec.leaseDurationSeconds: Invalid value: 0: must be greater \
             than 0, spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0]"
        );
        for spec in [
            json!("x"),
            json!({"leaseDurationSeconds": "15"}),
            json!({"leaseDurationSeconds": 2_147_483_648_u32}),
            json!({"leaseTransitions": 1.5}),
            json!({"holderIdentity": 1}),
            json!({"renewTime": "yesterday"}),
        ] {
            let lease = json!({"metadata": {"name": "a"}, "spec": spec});
            assert_eq!(shape(&leases(), &lease).unwrap_err().code(), 400, "{lease}");
        }
    }
}
