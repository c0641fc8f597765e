//! Whose requests a fence judges, and how it tells the replicas apart.

use crate::{cel, error::refuse};
use kube_leader_gate::{
    ErrInvalid, Identity,
    extension::{is_label, is_subdomain},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, slice, str::FromStr};

/// More replicas than an election has. The API server goes through the list at each write of the cluster.
const MOST_USERS: usize = 100;

/// The pod of a token that is bound to a pod, as the API server reports it.
pub(crate) const POD_NAME: &str = "authentication.kubernetes.io/pod-name";

/// The clients whose writes a [`Fence`](crate::Fence) judges: the replicas of one program, and no other client.
///
/// The API server must be able to compare a request with the holder in the Lease:
///
/// | replicas | the identity of each |
/// | --- | --- |
/// | [`service_account`](Self::service_account): pods of one service account | the pod's name, which the token of the pod carries. This is the election's default in a cluster. |
/// | [`users`](Self::users), [`group`](Self::group): each replica has a user of its own, by a certificate for example | the user's name, without the [prefix](Self::prefix) |
///
/// ```
/// use kube_leader_gate_fence::Writers;
///
/// let pods = Writers::service_account("my-namespace", "my-controller")?;
/// let users = Writers::users(["replica:a", "replica:b"])?.prefix("replica:")?;
/// # Ok::<(), kube_leader_gate::ErrInvalid>(())
/// ```
///
/// For options and configuration files, text gives them too: `service-account:NAMESPACE/NAME`, `users:NAME,NAME` or
/// `group:NAME`.
///
/// ```
/// # use kube_leader_gate_fence::Writers;
/// let pods: Writers = "service-account:my-namespace/my-controller".parse()?;
/// assert_eq!(pods, Writers::service_account("my-namespace", "my-controller")?);
/// # Ok::<(), kube_leader_gate::ErrInvalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writers {
    who: Who,
    prefix: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    ServiceAccount(String),
    Users(Vec<String>),
    Group(String),
}

impl Writers {
    /// The pods that use this service account. Each one's identity is its pod's name.
    ///
    /// Use an account that no other program uses. The fence judges all of its writes.
    ///
    /// # Errors
    /// [`ErrInvalid`] if Kubernetes would refuse the namespace or the name.
    pub fn service_account(namespace: &str, name: &str) -> Result<Self, ErrInvalid> {
        if !is_label(namespace) || !is_subdomain(name) {
            let allowed = "the namespace and the name of a service account, as Kubernetes allows them";
            return refuse("service account", &format!("{namespace}/{name}"), allowed);
        }
        Ok(Self::new(Who::ServiceAccount(format!("system:serviceaccount:{namespace}:{name}"))))
    }

    /// These users, in any order. Each one's identity is its name.
    ///
    /// # Errors
    /// [`ErrInvalid`] if there is no user, if there are more than 100, if a name is empty, has control characters
    /// or a space at either end, or if it begins with `system:` and is not a service account's:
    /// `system:serviceaccount:NAMESPACE:NAME`.
    pub fn users(names: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, ErrInvalid> {
        // Two fences around the same users then have the same condition.
        let names: Vec<String> =
            names.into_iter().map(Into::into).collect::<BTreeSet<_>>().into_iter().collect();
        if names.is_empty() || names.len() > MOST_USERS {
            let allowed = "1 to 100 users; give more of them a group";
            return refuse("number of users", &names.len().to_string(), allowed);
        }
        if let Some(name) = names.iter().find(|name| !is_name(name) && account_of(name).is_none()) {
            let allowed = "a name without control characters or a space at either end; of those that begin with system:, \
                           which are parts of Kubernetes, only system:serviceaccount:NAMESPACE:NAME";
            return refuse("user", name, allowed);
        }
        Ok(Self::new(Who::Users(names)))
    }

    /// The users in this group. Each one's identity is its name.
    ///
    /// # Errors
    /// [`ErrInvalid`] if the name is empty, has control characters or a space at either end, or if it begins with
    /// `system:`: to such a group of Kubernetes other clients belong.
    pub fn group(name: impl Into<String>) -> Result<Self, ErrInvalid> {
        let name = name.into();
        if !is_name(&name) {
            let allowed = "a group of the replicas alone, which does not begin with system:, since the fence judges \
                           every write of its members; give pods of one account service-account:NAMESPACE/NAME";
            return refuse("group", &name, allowed);
        }
        Ok(Self::new(Who::Group(name)))
    }

    /// A user's name is this prefix and the identity. Default: none.
    ///
    /// # Errors
    /// [`ErrInvalid`] for a service account, whose identities are names of pods, or if one of the users has
    /// another prefix, or has no [identity](Identity::new) after it.
    pub fn prefix(self, prefix: impl Into<String>) -> Result<Self, ErrInvalid> {
        let prefix = prefix.into();
        let fits = |name: &String| name.strip_prefix(&prefix).is_some_and(|it| Identity::new(it).is_ok());
        match &self.who {
            Who::ServiceAccount(_) => {
                refuse("prefix", &prefix, "none: the identity of a pod is the pod's name")
            }
            Who::Users(names) if !names.iter().all(fits) => {
                refuse("prefix", &prefix, "the beginning of each user's name, with the identity after it")
            }
            Who::Users(_) | Who::Group(_) => Ok(Self { prefix, ..self }),
        }
    }

    const fn new(who: Who) -> Self {
        Self { who, prefix: String::new() }
    }

    /// Refuses an identity that these writers cannot have.
    pub(crate) fn admit(&self, identity: &Identity) -> Result<(), ErrInvalid> {
        let given = identity.as_str();
        match &self.who {
            Who::ServiceAccount(_) if !is_subdomain(given) => refuse(
                "identity",
                given,
                "the name of the pod, since the fence compares the holder with the pod in the token; leave the \
                 identity out, or set POD_NAME",
            ),
            Who::Users(names) if !names.contains(&format!("{}{given}", self.prefix)) => refuse(
                "identity",
                given,
                "the name of one of the fence's users, without the prefix, since the fence compares the holder with \
                 the user",
            ),
            _ => Ok(()),
        }
    }

    /// The condition under which the fence judges a request.
    pub(crate) fn condition(&self) -> String {
        match &self.who {
            Who::Group(group) => {
                format!("has(request.userInfo.groups) && {} in request.userInfo.groups", cel::text(group))
            }
            _ => cel::one_of("request.userInfo.username", self.names()),
        }
    }

    /// The names of the users, or of the group.
    fn names(&self) -> &[String] {
        match &self.who {
            Who::ServiceAccount(name) | Who::Group(name) => slice::from_ref(name),
            Who::Users(names) => names,
        }
    }

    /// The namespaces of the service accounts among them.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.names().iter().filter_map(|name| Some(account_of(name)?.0))
    }

    /// Each name, with the user and the groups as an access review takes them.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = (&String, Value)> {
        self.names().iter().map(|name| {
            let spec = match (&self.who, account_of(name)) {
                (Who::Group(_), _) => json!({ "groups": [name] }),
                (_, Some((namespace, _))) => {
                    let own = format!("system:serviceaccounts:{namespace}");
                    json!({ "user": name, "groups": [own, "system:serviceaccounts", "system:authenticated"] })
                }
                (_, None) => json!({ "user": name, "groups": ["system:authenticated"] }),
            };
            (name, spec)
        })
    }

    /// Whether a fence with this condition names one of them too. Who is in which group, only credentials say.
    pub(crate) fn overlap(&self, condition: &str) -> bool {
        let are_group = matches!(self.who, Who::Group(_));
        are_group == condition.contains("request.userInfo.groups")
            && self.names().iter().any(|name| condition.contains(&cel::text(name)))
    }

    /// What in a request is compared with the holder. Empty if the request does not say it.
    pub(crate) fn asker(&self) -> String {
        match self.who {
            Who::ServiceAccount(_) => format!(
                "has(request.userInfo.extra) && '{POD_NAME}' in request.userInfo.extra && \
                 size(request.userInfo.extra['{POD_NAME}']) == 1 ? request.userInfo.extra['{POD_NAME}'][0] : ''"
            ),
            Who::Users(_) | Who::Group(_) => "request.userInfo.username".to_owned(),
        }
    }

    /// What the holder's request says there.
    pub(crate) fn expected(&self) -> String {
        if self.prefix.is_empty() {
            return "variables.holder".to_owned();
        }
        format!("{} + variables.holder", cel::text(&self.prefix))
    }

    /// Whether a user with this name and these groups is one of them.
    pub(crate) fn contain(&self, username: &str, groups: &[String]) -> bool {
        match &self.who {
            Who::Group(group) => groups.contains(group),
            _ => self.names().iter().any(|name| name == username),
        }
    }

    /// Whether their tokens must name a pod.
    pub(crate) const fn are_pods(&self) -> bool {
        matches!(self.who, Who::ServiceAccount(_))
    }

    /// The identity of this user, by its name.
    pub(crate) fn identity_of<'a>(&self, username: &'a str) -> Option<&'a str> {
        username.strip_prefix(&self.prefix).filter(|identity| !identity.is_empty())
    }
}

impl FromStr for Writers {
    type Err = ErrInvalid;

    fn from_str(text: &str) -> Result<Self, ErrInvalid> {
        match text.split_once(':') {
            Some(("service-account", account)) => {
                // Without a slash, the name is empty, and refused with the form that is allowed.
                let (namespace, name) = account.split_once('/').unwrap_or((account, ""));
                Self::service_account(namespace, name)
            }
            Some(("users", names)) => Self::users(names.split(',')),
            Some(("group", name)) => Self::group(name),
            _ => {
                let allowed = "service-account:NAMESPACE/NAME, users:NAME,NAME or group:NAME";
                refuse("text for the writers", text, allowed)
            }
        }
    }
}

/// The namespace and the name of a service account.
fn account_of(user: &str) -> Option<(&str, &str)> {
    let account = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    (is_label(account.0) && is_subdomain(account.1)).then_some(account)
}

/// Not of the users and groups of Kubernetes itself: a fence around one of them would stop the cluster. Nor with a space
/// at an end, as in `users:a, b`: no identity has one.
fn is_name(text: &str) -> bool {
    let plain = !text.chars().any(char::is_control) && text.trim() == text;
    plain && !text.is_empty() && !text.starts_with("system:")
}
