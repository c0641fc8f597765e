//! The words with which the API server refuses a request for a policy.

use serde_json::Value;
use std::sync::Arc;

/// How the fence's own message begins. The gate's error begins so too.
pub(crate) const MARKER: &str = "write attempt rejected as client is not leader";

/// How an admission webhook's message begins, after its name. It may tell what became of a write of its own.
const WEBHOOK: &str = " denied the request: ";

/// Recognises the refusals of one policy, whose binding has the same name.
#[derive(Clone, Debug)]
pub(crate) struct Denial(Arc<str>);

impl Denial {
    pub(crate) fn by(policy: &str) -> Self {
        Self(format!("ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: ").into())
    }

    /// The policy's own words in the message of a Status.
    pub(crate) fn reason<'a>(&self, message: &'a str) -> Option<&'a str> {
        let (before, reason) = message.split_once(&*self.0)?;
        (!before.contains(WEBHOOK)).then_some(reason)
    }

    /// The message of this answer, if the policy refused a request because its sender does not hold the Lease. Of an
    /// answer that is no JSON (protobuf, CBOR, YAML), the words by which it is recognised.
    pub(crate) fn in_answer(&self, answer: &[u8]) -> Option<Arc<str>> {
        let Ok(status) = serde_json::from_slice::<Value>(answer) else {
            let words = format!("{}{MARKER}", self.0);
            let answer = letters(answer);
            let (before, _) = answer.split_once(&letters(words.as_bytes()))?;
            return (!before.contains(&letters(WEBHOOK.as_bytes()))).then(|| words.into());
        };
        let message = status.get("message")?.as_str()?;
        let reason = self.reason(message)?;
        reason.starts_with(MARKER).then(|| message.into())
    }
}

/// Without spaces and quotes: YAML breaks long lines, and doubles the quotes in quoted texts.
fn letters(text: &[u8]) -> String {
    let keeps = |it: &char| it.is_ascii_graphic() && !"'\"\\".contains(*it);
    text.iter().copied().map(char::from).filter(keeps).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(message: &str) -> bool {
        let status = json!({ "kind": "Status", "code": 403, "message": message }).to_string();
        Denial::by("a.b").in_answer(status.as_bytes()).is_some()
    }

    #[test]
    fn only_this_fences_refusals_are_found() {
        let by = |policy: &str| {
            format!(
                "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: "
            )
        };
        assert!(found(&format!("{}{MARKER}: no candidate holds it", by("a.b"))));
        for other in [
            format!("{}{MARKER}", by("a.c")),
            format!("{}expression 'x' resulted in error", by("a.b")),
            format!("{}failed to configure binding: no params found", by("a.b")),
            format!("configmaps \"a\" is forbidden: {MARKER}"),
            "User \"u\" cannot update".to_owned(),
        ] {
            assert!(!found(&other), "{other}");
        }
        assert!(Denial::by("a.b").in_answer(b"no JSON").is_none());
    }
}
