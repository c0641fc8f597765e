//! What the server's log says about the attack, and whether it explains the changes.

use super::{
    objects::{Change, Objects, Place},
    stage::{Follower, Stage},
};
use crate::{
    apiserver::{Audit, AuditEvent},
    oracle::{Oracle, Reading},
};
use http::{Method, Request};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the log may take to show the reason of a change.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Witness(Audit);

/// A request that reached the server, as the server and the oracle read it.
struct Deed<'a> {
    event: AuditEvent,
    method: Method,
    reading: Reading,
    /// `None` for users that are not judged: the server itself, and the leader's election.
    follower: Option<&'a Follower>,
}

impl Witness {
    pub fn new(stage: &Stage) -> Self {
        Self(stage.cluster.audit())
    }

    /// Every request and change that should not exist.
    pub async fn complaints(
        &mut self,
        stage: &Stage,
        oracle: &mut Oracle,
        before: &Objects,
        after: &Objects,
    ) -> Vec<String> {
        let changes = before.changes(after);
        let mut deeds = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        loop {
            deeds.extend(self.0.read().into_iter().filter_map(|event| Deed::new(event, stage, oracle)));
            let unexplained: Vec<_> =
                changes.iter().filter(|change| !deeds.iter().any(|deed| deed.explains(change))).collect();
            if !unexplained.is_empty() && Instant::now() < deadline {
                sleep(Duration::from_millis(50)).await;
                continue;
            }
            test_support::harness::say(format_args!(
                "{} requests came through, {} objects have changed",
                deeds.len(),
                changes.len()
            ));
            let unexplained = unexplained.iter().map(|change| format!("nothing explains {change:?}"));
            return deeds.iter().filter_map(Deed::complaint).chain(unexplained).collect();
        }
    }
}

impl<'a> Deed<'a> {
    fn new(event: AuditEvent, stage: &'a Stage, oracle: &mut Oracle) -> Option<Self> {
        let follower = stage.followers().iter().find(|follower| follower.user == event.user.username);
        let ended = matches!(&*event.stage, "ResponseComplete" | "ResponseStarted" | "Panic");
        if !ended || event.user.username == "admin" {
            return None;
        }
        // The log has the verb. For a resource only one method gives it, except for HEAD and odd methods.
        let method = match &*event.verb {
            "create" | "post" => Method::POST,
            "update" | "put" => Method::PUT,
            "patch" => Method::PATCH,
            "delete" | "deletecollection" => Method::DELETE,
            "get" | "list" | "watch" => Method::GET,
            "head" => Method::HEAD,
            _ => Method::OPTIONS,
        };
        let request =
            Request::builder().method(&method).uri(&event.request_uri).body(()).expect("it was sent");
        Some(Self { reading: oracle.read_one(&request), event, method, follower })
    }

    fn complaint(&self) -> Option<String> {
        let follower = self.follower?;
        let (there, reading) = (&self.event.object_ref, &self.reading);
        let meant =
            reading.is_read(&self.method) || follower.exemption.as_ref().is_some_and(|it| it.means(reading));
        let name = there.name.as_deref().unwrap_or_default();
        // The server fills in the name that stands in the body.
        let same_name = reading.name == name || reading.verb == "create";
        let same = (&*there.api_group, &*there.resource) == (&*reading.group, &*reading.resource)
            && there.subresource.as_deref().unwrap_or_default() == reading.subresource
            && (there.namespace.as_deref().unwrap_or_default() == reading.namespace
                || reading.namespace.is_empty())
            && (same_name || !reading.is_resource)
            && self.event.verb == reading.verb;
        let wrong = match (meant, same) {
            (false, _) => "let through, and not meant",
            (_, false) => "not what the oracle reads",
            _ => return None,
        };
        let AuditEvent { verb, request_uri, response_status, .. } = &self.event;
        let code = response_status.code;
        Some(format!(
            "{wrong} by {}: {verb} {request_uri:.200} {there:?}, answered {code}\n  {reading:?}",
            follower.name()
        ))
    }

    /// Whether the request took effect, was no dry run, and concerns this object.
    fn explains(&self, change: &Change<'_>) -> bool {
        let (there, reading) = (&self.event.object_ref, &self.reading);
        let name = there.name.as_deref().unwrap_or_default();
        let namespace = there.namespace.as_deref().unwrap_or_default();
        let place = Place::new(&there.api_group, &there.resource, namespace, name);
        let wanted = change.place;
        let same = place == *wanted;
        let among = (&place.group, &place.resource) == (&wanted.group, &wanted.resource)
            && (namespace.is_empty() || namespace == wanted.namespace);
        let about = match (&*self.event.verb, change.before, change.after) {
            ("deletecollection", Some(_), _) => among,
            // A delete creates nothing, and a change deletes nothing. (An eviction is a create.)
            ("deletecollection" | "delete", None, _) | ("update" | "patch", _, None) => false,
            _ => same,
        };
        let meant = self.follower.is_none_or(|it| it.exemption.as_ref().is_some_and(|it| it.means(reading)));
        // A request for `status` changes only the status and the server's own records about objects.
        let kept = |part: &str| match (change.before, change.after) {
            (Some(before), Some(after)) => before[part] == after[part],
            _ => true,
        };
        let fits = reading.subresource != "status" || (kept("spec") && kept("data"));
        let done = (200..300).contains(&self.event.response_status.code);
        about && meant && fits && done && !reading.dry_run && !reading.is_read(&self.method)
    }
}
