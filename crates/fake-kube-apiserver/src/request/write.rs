//! The options of a create, update, patch or delete.

use serde_json::{Value, json};

use crate::cause::Cause;
use crate::object::decode::FieldValidation;
use crate::request::RequestInfo;
use crate::request::negotiate::PatchKind;
use crate::request::query::Query;
use crate::status::Refusal;

/// The options of a create, update or patch.
#[derive(Debug, Default)]
pub(crate) struct WriteOptions {
    pub(crate) dry: bool,
    pub(crate) validation: FieldValidation,
}

/// The options of a delete, from the body, or from the query if there is no body.
#[derive(Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) dry: bool,
    pub(crate) uid: Option<String>,
    pub(crate) version: Option<String>,
}

const MANAGER_LIMIT: usize = 128;

// === impl WriteOptions ===

impl WriteOptions {
    pub(crate) fn parse(info: &RequestInfo, patch: Option<PatchKind>) -> Result<Self, Refusal> {
        let kind = match (patch, info.method.as_str()) {
            (Some(_), _) => "PatchOptions",
            (None, "PUT") => "UpdateOptions",
            (None, _) => "CreateOptions",
        };
        let query = &info.query;
        let manager = query.get("fieldManager").unwrap_or_default();
        let mut causes = Vec::new();
        match patch {
            Some(PatchKind::Apply) if manager.is_empty() => {
                causes.push(Cause::required("fieldManager", "is required for apply patch"));
            }
            Some(PatchKind::Merge | PatchKind::Json) if query.get("force").is_some() => {
                causes.push(Cause::forbidden("force", "may not be specified for non-apply patch"));
            }
            _ => {}
        }
        if manager.len() > MANAGER_LIMIT {
            causes.push(Cause::too_long("fieldManager", MANAGER_LIMIT));
        }
        if let Some((position, odd)) = manager.char_indices().find(|(_, it)| it.is_control()) {
            let why = format!("invalid character U+{:04X} (at position {position})", u32::from(odd));
            causes.push(Cause::invalid("fieldManager", &manager.into(), &why));
        }
        let values = query.all("dryRun").map(Value::from).collect();
        let dry = dry_run(&values, &mut causes);
        let validation = field_validation(query, &mut causes);
        if causes.is_empty() {
            Ok(Self { dry, validation })
        } else {
            Err(Refusal::invalid_options(kind, &causes))
        }
    }
}

fn field_validation(query: &Query, causes: &mut Vec<Cause>) -> FieldValidation {
    match query.get("fieldValidation").unwrap_or_default() {
        "" | "Warn" => FieldValidation::Warn,
        "Ignore" => FieldValidation::Ignore,
        "Strict" => FieldValidation::Strict,
        other => {
            let supported = ["", "Ignore", "Strict", "Warn"];
            causes.push(Cause::unsupported("fieldValidation", &other.into(), &supported));
            FieldValidation::default()
        }
    }
}

/// Reads `dryRun`: `All` or absent.
fn dry_run(values: &Value, causes: &mut Vec<Cause>) -> bool {
    let all = values.as_array().into_iter().flatten().all(|it| it == "All");
    if !all {
        causes.push(Cause::unsupported("dryRun", values, &["All"]));
    }
    all && values.as_array().is_some_and(|it| !it.is_empty())
}

// === impl DeleteOptions ===

impl DeleteOptions {
    /// Reads the options. `body` is `Null` if the request has none.
    pub(crate) fn parse(body: Value, query: &Query) -> Result<Self, Refusal> {
        let options = if body.is_null() { from_query(query)? } else { body };
        check_types(&options)?;
        let mut causes = Vec::new();
        let policy = &options["propagationPolicy"];
        match policy.as_str() {
            Some(_) if !options["orphanDependents"].is_null() => {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                causes.push(Cause::invalid("propagationPolicy", policy, why));
            }
            None | Some("Foreground" | "Background" | "Orphan") => {}
            Some(_) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                causes.push(Cause::unsupported("propagationPolicy", policy, &supported));
            }
        }
        let dry = dry_run(&options["dryRun"], &mut causes);
        if !causes.is_empty() {
            return Err(Refusal::invalid_options("DeleteOptions", &causes));
        }
        let wanted = &options["preconditions"];
        let text = |it: &Value| it.as_str().map(str::to_owned);
        Ok(Self { dry, uid: text(&wanted["uid"]), version: text(&wanted["resourceVersion"]) })
    }
}

fn from_query(query: &Query) -> Result<Value, Refusal> {
    let grace = query.number("gracePeriodSeconds")?;
    let orphan = query.get("orphanDependents").map(|_| query.flag("orphanDependents"));
    Ok(json!({
        "dryRun": query.all("dryRun").collect::<Vec<_>>(), "gracePeriodSeconds": grace,
        "propagationPolicy": query.get("propagationPolicy"), "orphanDependents": orphan,
    }))
}

fn check_types(options: &Value) -> Result<(), Refusal> {
    let right = |member: &str, kind: fn(&Value) -> bool| options[member].is_null() || kind(&options[member]);
    let texts = |it: &Value| it.as_array().is_some_and(|it| it.iter().all(Value::is_string));
    for (member, right) in [
        ("gracePeriodSeconds", right("gracePeriodSeconds", Value::is_i64)),
        ("preconditions", right("preconditions", Value::is_object)),
        ("orphanDependents", right("orphanDependents", Value::is_boolean)),
        ("propagationPolicy", right("propagationPolicy", Value::is_string)),
        ("dryRun", right("dryRun", texts)),
    ] {
        if !right {
            return Err(Refusal::bad_request(format!(
                "json: cannot unmarshal {} into Go struct field DeleteOptions.{member}",
                options[member]
            )));
        }
    }
    Ok(())
}
