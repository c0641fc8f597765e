//! Faults: rules that say which requests go wrong, and how.

pub(crate) mod active;
pub(crate) mod effect;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::fault::effect::Effect;
use crate::request::RequestInfo;
use crate::store::piece::WatchBreak;

/// A rule: which requests, what happens to them, and how often.
///
/// Without further restriction it meets every request, any number of times. All rules that match a request
/// apply to it, in the order of their injection, up to the first that ends it. Times are tokio's.
///
/// ```
/// use std::time::Duration;
/// use fake_kube_apiserver::{ApiServer, Fault};
///
/// let server = ApiServer::new();
/// let slow = server.inject(Fault::delay_after(Duration::from_secs(3)).user("a").verb("update").resource("leases"));
/// assert_eq!(slow.hits(), 0);
/// ```
#[derive(Clone)]
pub struct Fault {
    user: Option<String>,
    verb: Option<String>,
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    path: Option<PathMatcher>,
    writes: bool,
    pub(crate) times: Option<u64>,
    pub(crate) effect: Effect,
}

type PathMatcher = Arc<dyn Fn(&str) -> bool + Send + Sync>;

// === impl Fault ===

impl Fault {
    fn new(effect: Effect) -> Self {
        Self {
            user: None,
            verb: None,
            resource: None,
            namespace: None,
            name: None,
            path: None,
            writes: false,
            times: None,
            effect,
        }
    }

    /// The request waits before it takes effect. A client that hangs up meanwhile takes it back.
    #[must_use]
    pub fn delay_before(delay: Duration) -> Self {
        Self::new(Effect::DelayBefore(delay))
    }

    /// The request takes effect; its answer waits.
    #[must_use]
    pub fn delay_after(delay: Duration) -> Self {
        Self::new(Effect::DelayAfter(delay))
    }

    /// The request never takes effect and is never answered.
    #[must_use]
    pub fn hang_before() -> Self {
        Self::new(Effect::HangBefore)
    }

    /// The request takes effect and is never answered.
    #[must_use]
    pub fn hang_after() -> Self {
        Self::new(Effect::HangAfter)
    }

    /// The connection is lost, and the request has no effect.
    #[must_use]
    pub fn drop_before() -> Self {
        Self::new(Effect::DropBefore)
    }

    /// The request takes effect, then the connection is lost.
    #[must_use]
    pub fn drop_after() -> Self {
        Self::new(Effect::DropAfter)
    }

    /// The request is answered with this status and has no effect. A code outside 400-599 becomes 500.
    #[must_use]
    pub fn status(code: u16) -> Self {
        Self::new(Effect::Status(code, None))
    }

    /// As [`Fault::status`], with a `Retry-After` header in whole seconds.
    #[must_use]
    pub fn status_retry_after(code: u16, retry_after: Duration) -> Self {
        Self::new(Effect::Status(code, Some(retry_after)))
    }

    /// The request is answered with 403, as when RBAC does not allow it.
    #[must_use]
    pub fn forbidden() -> Self {
        Self::new(Effect::Forbidden)
    }

    /// Creates and updates in a namespace are answered with 404, as when it does not exist; nothing else is
    /// met.
    #[must_use]
    pub fn namespace_not_found() -> Self {
        Self::new(Effect::NamespaceNotFound)
    }

    /// A new watch breaks as soon as it has sent what was there at its start; nothing else is met.
    /// For watches that are open already: [`ApiServer::break_watches`](crate::ApiServer::break_watches).
    #[must_use]
    pub fn break_watch(how: WatchBreak) -> Self {
        Self::new(Effect::BreakWatch(how))
    }

    /// Only requests of this user.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Only requests with this verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`.
    #[must_use]
    pub fn verb(mut self, verb: impl Into<String>) -> Self {
        self.verb = Some(verb.into());
        self
    }

    /// Only requests with a method other than GET, HEAD and OPTIONS.
    #[must_use]
    pub fn writes(mut self) -> Self {
        self.writes = true;
        self
    }

    /// Only requests on this resource, in its plural form.
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Only requests in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only requests that name this object in their path: no create, list or watch does.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Only requests whose path, without the query, pleases `matches`. It must not use the server.
    #[must_use]
    pub fn path(mut self, matches: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.path = Some(Arc::new(matches));
        self
    }

    /// Only the first `times` requests that match.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    pub(crate) fn matches(&self, info: &RequestInfo) -> bool {
        let target = info.target();
        let same =
            |wanted: &Option<String>, found: Option<&str>| wanted.is_none() || wanted.as_deref() == found;
        let applies = match &self.effect {
            Effect::NamespaceNotFound => {
                matches!(info.verb, "create" | "update") && target.is_some_and(|it| it.namespace.is_some())
            }
            Effect::BreakWatch(_) => info.verb == "watch",
            _ => true,
        };
        applies
            && (!self.writes || info.is_write())
            && same(&self.user, Some(&info.user))
            && same(&self.verb, Some(info.verb))
            && same(&self.resource, target.map(|it| it.collection.resource.as_str()))
            && same(&self.namespace, target.and_then(|it| it.namespace.as_deref()))
            && same(&self.name, target.and_then(|it| it.name.as_deref()))
            && self.path.as_ref().is_none_or(|it| it(&info.path))
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault")
            .field("effect", &self.effect)
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}
