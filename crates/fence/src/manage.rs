//! Checks, applies and removes a fence.

use crate::{
    anchor,
    definition::Fence,
    drift::Drift,
    error::ErrFence,
    server::{self, Kind, name},
};
use kube_leader_gate::kube_client::Client;
use serde_json::Value;

/// What [`Fence::apply`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Applied {
    /// There was no fence, or only one half of it.
    Created,
    /// The fence said something else before.
    Changed,
    /// The fence stood already.
    Unchanged,
}

/// The two objects in the cluster.
struct Found {
    policy: Option<Value>,
    binding: Option<Value>,
}

impl Fence {
    /// Compares the fence with what the cluster has, and returns each difference. An empty list means that the fence
    /// stands, and that its Lease exists. It changes nothing. It does not show whether the API server has taken the
    /// policy in: an election finds that out before its gate opens. Cancel-safe.
    ///
    /// It also finds other fences around the same writers, by name, and writers that may impersonate. It needs `get` and
    /// `list` on `validatingadmissionpolicies` and on `validatingadmissionpolicybindings`, `get` on the Lease, and `create`
    /// on `subjectaccessreviews`. If `client` is one of the replicas, it also checks the [token](Self::identify).
    ///
    /// # Errors
    /// [`ErrFence`] says why the comparison was not possible.
    pub async fn check(&self, client: &Client) -> Result<Vec<Drift>, ErrFence> {
        self.check_client(client).await?;
        let Found { policy, binding } = self.find(client).await?;
        let mut findings = Vec::new();
        for (kind, found) in [(Kind::Policy, &policy), (Kind::Binding, &binding)] {
            match found {
                Some(found) => findings.extend(Drift::between(kind, &self.wanted(kind), found)),
                None => findings.push(Drift::new(
                    format!("{} {:?}", kind.as_str(), self.name()),
                    "is missing",
                    "the API server refuses no write of a follower",
                )),
            }
        }
        let warnings =
            policy.iter().filter_map(|it| it["status"]["typeChecking"]["expressionWarnings"].as_array());
        for warning in warnings.flatten() {
            findings.push(Drift::new(
                format!("{} {}", Kind::Policy.as_str(), warning["fieldRef"].as_str().unwrap_or_default()),
                format!("does not fit: {}", warning["warning"].as_str().unwrap_or_default()),
                "the API server may refuse every write of the replicas",
            ));
        }
        if server::lease(client, &self.lease).await?.is_none() {
            let meaning = "the API server refuses no write until a candidate creates it";
            findings.push(Drift::new(format!("Lease \"{}\"", self.lease), "is missing", meaning));
        }
        findings.extend(anchor::check(client).await?);
        findings.extend(self.find_others(client).await?);
        findings.extend(self.find_impersonators(client).await?);
        Ok(findings)
    }

    /// Makes the fence stand: first the policy, then the binding. Does nothing if it stands already. It replaces the whole
    /// spec of an object, also what another tool has added. Its field manager is `kube-leader-gate`.
    ///
    /// Before them it makes an anchor: a policy and a binding with the name `kube-leader-gate.anchor`, which judge
    /// nothing, and which all fences of a cluster share, also if another tool has made it. While no binding names a
    /// Lease, an API server stops reading Leases for its policies, and begins again only with its process
    /// (kubernetes/kubernetes#130887). A later fence would judge by the holder of that time.
    ///
    /// It reads both objects first. If this crate has not made one of them, it changes nothing. If the binding fails
    /// after the policy was created, it removes the policy again. Without a binding, a policy is not in force.
    ///
    /// It needs `get`, `create`, `patch`, `update` and `delete` on `validatingadmissionpolicies` and on
    /// `validatingadmissionpolicybindings`, and `get` on the Lease: who binds a Lease must be able to read it.
    ///
    /// # Errors
    /// [`ErrFence`] says what has changed.
    ///
    /// Not cancel-safe: if the future is dropped, the policy may stand without the binding.
    pub async fn apply(&self, client: &Client) -> Result<Applied, ErrFence> {
        self.check_client(client).await?;
        let found = self.find(client).await?;
        // Before the first change, so that nothing is half done.
        for (kind, found) in [(Kind::Policy, &found.policy), (Kind::Binding, &found.binding)] {
            found.as_ref().map_or(Ok(()), |found| server::check_stays(kind, found))?;
        }
        anchor::apply(client).await?;
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        let policy =
            server::apply(client, Kind::Policy, self.wanted(Kind::Policy), found.policy.as_ref()).await?;
        let bound =
            server::apply(client, Kind::Binding, self.wanted(Kind::Binding), found.binding.as_ref()).await;
        let binding = match bound {
            Ok(binding) => binding,
            Err(error) => return Err(self.undo(client, &found, &policy, error).await),
        };
        let (Some(before), Some(bound)) = (&found.policy, &found.binding) else {
            return Ok(Applied::Created);
        };
        let same = version(before) == version(&policy) && version(bound) == version(&binding);
        Ok(if same { Applied::Unchanged } else { Applied::Changed })
    }

    /// Removes the fence: first the binding, then the policy. Returns whether there was anything to remove. The
    /// [anchor](Self::apply) stays, for the next fence.
    ///
    /// It reads both objects first. If this crate has not made one of them, it removes nothing. It needs `get` and
    /// `delete` on `validatingadmissionpolicies` and on `validatingadmissionpolicybindings`.
    ///
    /// # Errors
    /// [`ErrFence`] says what has changed.
    ///
    /// Not cancel-safe: if the future is dropped, the policy may stand without the binding, and is not in force.
    pub async fn remove(&self, client: &Client) -> Result<bool, ErrFence> {
        server::check_version(client).await?;
        let Found { policy, binding } = self.find(client).await?;
        if let Some(binding) = &binding {
            server::delete(client, Kind::Binding, binding).await?;
        }
        if let Some(policy) = &policy {
            let deleted = server::delete(client, Kind::Policy, policy).await;
            deleted.map_err(|error| ErrFence::HalfDone {
                stands: "the binding is gone and the policy still stands: the fence refuses nothing"
                    .to_owned(),
                source: Box::new(error),
            })?;
        }
        Ok(policy.is_some() || binding.is_some())
    }

    /// Refuses an API server that is too old, and a token that the fence could not judge.
    async fn check_client(&self, client: &Client) -> Result<(), ErrFence> {
        server::check_version(client).await?;
        self.identify(client).await.map(drop)
    }

    async fn find(&self, client: &Client) -> Result<Found, ErrFence> {
        let own = async |kind| {
            let found = server::get(client, kind, self.name()).await?;
            found.as_ref().map_or(Ok(()), |found| server::check_own(kind, found)).map(|()| found)
        };
        Ok(Found { policy: own(Kind::Policy).await?, binding: own(Kind::Binding).await? })
    }

    fn wanted(&self, kind: Kind) -> Value {
        let object = match kind {
            Kind::Policy => serde_json::to_value(self.policy()),
            Kind::Binding => serde_json::to_value(self.binding()),
        };
        object.expect("texts and lists are JSON")
    }

    /// Takes the policy away again, if this call has created it.
    async fn undo(&self, client: &Client, found: &Found, policy: &Value, error: ErrFence) -> ErrFence {
        let stands = match (&found.policy, &found.binding) {
            (None, None) => match server::delete(client, Kind::Policy, policy).await {
                Ok(()) => return error,
                Err(_) => "the policy stands without a binding: the fence refuses nothing",
            },
            (Some(_), None) => "the policy stands without a binding: the fence refuses nothing",
            (_, Some(_)) => "the policy is as wanted, and the binding is as it was before",
        };
        ErrFence::HalfDone { stands: stands.to_owned(), source: Box::new(error) }
    }

    /// Other bindings, of this policy or of a fence around the same replicas. The API server judges by each of them.
    async fn find_others(&self, client: &Client) -> Result<Vec<Drift>, ErrFence> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut others = server::list(client, Kind::Policy).await?;
        // By their form: another tool that applies a fence puts its own label on it.
        others.retain(|policy| {
            let conditions = policy["spec"]["matchConditions"].as_array().into_iter().flatten();
            let mut whose = conditions.filter(|it| it["name"] == "is-from-a-replica");
            let follows_a_lease = policy["spec"]["paramKind"]["kind"] == "Lease";
            follows_a_lease && whose.any(|it| self.writers.overlap(&text(&it["expression"])))
        });
        let bindings = server::list(client, Kind::Binding).await?;
        let mut findings = Vec::new();
        for binding in bindings.iter().filter(|binding| name(binding) != self.name()) {
            let (policy, lease) = (text(&binding["spec"]["policyName"]), &binding["spec"]["paramRef"]);
            if policy == self.name() {
                let meaning =
                    "the fence also judges as this binding says, for example by another Lease; remove it";
                let place = format!("{} {:?}", Kind::Binding.as_str(), name(binding));
                findings.push(Drift::new(place, "puts the policy in force too", meaning));
            } else if others.iter().any(|other| name(other) == policy) {
                let meaning = "a replica can write only if it holds that Lease too; if the Lease was renamed, remove \
                               the old fence; else give each election writers of its own";
                let lease = format!("{}/{}", text(&lease["namespace"]), text(&lease["name"]));
                let what = format!("judges the same replicas by the Lease {lease:?}");
                findings.push(Drift::new(format!("{} {policy:?}", Kind::Policy.as_str()), what, meaning));
            }
        }
        Ok(findings)
    }
}
