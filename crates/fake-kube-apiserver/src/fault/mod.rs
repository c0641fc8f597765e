//! Faults: which requests fail, and how.

pub(crate) mod active;
pub(crate) mod effect;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::fault::effect::Effect;
use crate::request::RequestInfo;
use crate::store::piece::WatchBreak;

/// A fault: what happens, to which requests, and how often.
///
/// A constructor says what happens. Without further methods the fault applies to every request. All faults that
/// match a request apply to it, in the order of [`ApiServer::inject`](crate::ApiServer::inject), up to the first
/// that ends the request. Delays use tokio's clock, which a test can pause.
///
/// ```
/// use fake_kube_apiserver::{ApiServer, Fault};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, Client};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> kube::Result<()> {
/// let server = ApiServer::new();
/// let client = Client::new(server.service().user("alice"), "default");
/// let maps: Api<ConfigMap> = Api::default_namespaced(client);
///
/// let fault = server.inject(Fault::status(503).user("alice").verb("list").resource("configmaps"));
/// let error = maps.list(&Default::default()).await.unwrap_err();
/// assert!(matches!(error, kube::Error::Api(status) if status.code == 503));
/// assert_eq!(fault.hits(), 1);
///
/// drop(fault);
/// assert!(maps.list(&Default::default()).await?.items.is_empty());
/// # Ok(()) }
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

    /// Delays the request before it takes effect. If the client hangs up meanwhile, the request has no effect.
    #[must_use]
    pub fn delay_before(delay: Duration) -> Self {
        Self::new(Effect::DelayBefore(delay))
    }

    /// Lets the request take effect, and delays the answer.
    #[must_use]
    pub fn delay_after(delay: Duration) -> Self {
        Self::new(Effect::DelayAfter(delay))
    }

    /// Never lets the request take effect, and never answers it.
    #[must_use]
    pub fn hang_before() -> Self {
        Self::new(Effect::HangBefore)
    }

    /// Lets the request take effect, and never answers it.
    #[must_use]
    pub fn hang_after() -> Self {
        Self::new(Effect::HangAfter)
    }

    /// Drops the connection before the request takes effect.
    #[must_use]
    pub fn drop_before() -> Self {
        Self::new(Effect::DropBefore)
    }

    /// Lets the request take effect, then drops the connection.
    #[must_use]
    pub fn drop_after() -> Self {
        Self::new(Effect::DropAfter)
    }

    /// Answers with this status. The request has no effect. A code outside 400-599 becomes 500.
    #[must_use]
    pub fn status(code: u16) -> Self {
        Self::new(Effect::Status(code, None))
    }

    /// Like [`Fault::status`], with a `Retry-After` header in whole seconds.
    #[must_use]
    pub fn status_retry_after(code: u16, retry_after: Duration) -> Self {
        Self::new(Effect::Status(code, Some(retry_after)))
    }

    /// Answers with 403, as when RBAC does not allow the request.
    #[must_use]
    pub fn forbidden() -> Self {
        Self::new(Effect::Forbidden)
    }

    /// Answers creates and updates in a namespace with 404, as if the namespace did not exist. It does not
    /// apply to other requests.
    #[must_use]
    pub fn namespace_not_found() -> Self {
        Self::new(Effect::NamespaceNotFound)
    }

    /// Breaks a new watch as soon as it has sent its initial events. It does not apply to other requests.
    ///
    /// Use [`ApiServer::break_watches`](crate::ApiServer::break_watches) for open watches.
    #[must_use]
    pub fn break_watch(how: WatchBreak) -> Self {
        Self::new(Effect::BreakWatch(how))
    }

    /// Sends each event of a new watch so much later than it happened, and in the same order. The initial events come
    /// so much later than the watch was opened. It does not apply to other requests.
    ///
    /// The watch stays late until it ends, even if the fault is removed. A break of an open watch comes late too. An
    /// end comes after the events that still wait. Events that wait for their time do not count for
    /// [`watch_buffer`](crate::ApiServerBuilder::watch_buffer).
    #[must_use]
    pub fn late_watch(delay: Duration) -> Self {
        Self::new(Effect::LateWatch(delay))
    }

    /// Applies only to requests of this user.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Applies only to requests with this verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`.
    #[must_use]
    pub fn verb(mut self, verb: impl Into<String>) -> Self {
        self.verb = Some(verb.into());
        self
    }

    /// Applies only to requests with a method other than GET, HEAD and OPTIONS.
    #[must_use]
    pub fn writes(mut self) -> Self {
        self.writes = true;
        self
    }

    /// Applies only to requests on this resource, in its plural form.
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Applies only to requests in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Applies only to requests with this object in the path. A create, list or watch has none.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Applies only to requests for whose path, without the query, `matches` is true. `matches` must not use the
    /// server.
    #[must_use]
    pub fn path(mut self, matches: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.path = Some(Arc::new(matches));
        self
    }

    /// Applies only to the first `times` requests that match.
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
            Effect::BreakWatch(_) | Effect::LateWatch(_) => info.verb == "watch",
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
