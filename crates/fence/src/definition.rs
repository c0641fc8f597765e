//! What a fence is: one policy and one binding.

use crate::{
    anchor, cel, conditions,
    denial::MARKER,
    error::refuse,
    server::{Kind, MANAGED_BY},
    writers::Writers,
};
use k8s_openapi::{
    api::admissionregistration::v1::{
        MatchCondition, MatchResources, NamedRuleWithOperations, ParamKind, ParamRef,
        ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
        ValidatingAdmissionPolicySpec, Validation, Variable,
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
    serde::Serialize,
};
use kube_leader_gate::{ErrInvalid, Policy, lease::LeaseName};

/// The annotation that names the Lease.
pub(crate) const LEASE: &str = "kube-leader-gate/lease";
/// What a probe of the holder is answered, before its term.
pub(crate) const PASSES: &str = "the fence lets the holder pass in term ";
/// Kubernetes' limit for a name.
const LONGEST_NAME: usize = 253;

/// A `ValidatingAdmissionPolicy` and its binding, with which the API server itself refuses the writes of each replica
/// that does not hold the Lease. The [guide](crate) describes it.
///
/// ```
/// use kube_leader_gate::{Policy, policy::Preset};
/// use kube_leader_gate_fence::{Fence, Writers};
///
/// let writers = Writers::service_account("my-namespace", "my-controller")?;
/// let lease = "my-namespace/my-controller".parse()?;
/// let fence = Fence::new(&lease, &writers, &Policy::strict().allow(Preset::Events))?;
/// assert!(fence.to_yaml().contains("kind: ValidatingAdmissionPolicyBinding"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Fence {
    name: String,
    pub(crate) lease: LeaseName,
    pub(crate) writers: Writers,
    conditions: Vec<MatchCondition>,
}

impl Fence {
    /// Defines the fence of an election: of its `lease`, and of its `policy`, which says what followers may send.
    ///
    /// The policy and the binding have the same name: the Lease's name, its namespace and `leader-gate`, with dots.
    ///
    /// # Errors
    /// [`ErrInvalid`] if the policy has a closure or more than 62 exemptions, or if the name gets too long.
    pub fn new(lease: &LeaseName, writers: &Writers, policy: &Policy) -> Result<Self, ErrInvalid> {
        let name = format!("{}.{}.leader-gate", lease.name(), lease.namespace());
        if name.len() > LONGEST_NAME {
            let allowed = "a lease whose name and namespace have 240 characters at most";
            return refuse("name", &name, allowed);
        }
        let conditions = conditions::of(writers, policy)?;
        Ok(Self { name, lease: lease.clone(), writers: writers.clone(), conditions })
    }

    /// The name of the policy and of the binding.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The lease that the fence follows.
    #[must_use]
    pub const fn lease(&self) -> &LeaseName {
        &self.lease
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> ValidatingAdmissionPolicy {
        let strings = |texts: &[&str]| Some(texts.iter().map(|&text| text.to_owned()).collect());
        let rule = |groups: &[&str], resources: &[&str], operations: &[&str]| NamedRuleWithOperations {
            api_groups: strings(groups),
            api_versions: strings(&["*"]),
            operations: strings(operations),
            resources: strings(resources),
            scope: Some("*".to_owned()),
            ..NamedRuleWithOperations::default()
        };
        let everything = rule(&["*"], &["*/*"], &["CREATE", "UPDATE", "DELETE", "CONNECT"]);
        // A match condition exempts their creations, except for probes. The heartbeats of nodes end here already.
        let elections = rule(&[conditions::COORDINATION], &[conditions::LEASES], &["UPDATE", "DELETE"]);
        ValidatingAdmissionPolicy {
            metadata: self.metadata(),
            spec: Some(ValidatingAdmissionPolicySpec {
                failure_policy: Some("Fail".to_owned()),
                match_conditions: Some(self.conditions.clone()),
                match_constraints: Some(MatchResources {
                    exclude_resource_rules: Some(vec![elections]),
                    match_policy: Some("Equivalent".to_owned()),
                    namespace_selector: Some(LabelSelector::default()),
                    object_selector: Some(LabelSelector::default()),
                    resource_rules: Some(vec![everything]),
                }),
                param_kind: Some(ParamKind {
                    api_version: Some(format!("{}/v1", conditions::COORDINATION)),
                    kind: Some("Lease".to_owned()),
                }),
                validations: Some(Self::validations()),
                variables: Some(self.variables()),
                ..ValidatingAdmissionPolicySpec::default()
            }),
            ..ValidatingAdmissionPolicy::default()
        }
    }

    /// The binding of the policy to the Lease. If there is no Lease, the fence refuses nothing: no candidate leads then,
    /// and Kubernetes offers only one other choice, which refuses every write in the cluster, of any user.
    #[must_use]
    #[allow(clippy::useless_conversion, reason = "in some versions of Kubernetes these fields are optional")]
    pub fn binding(&self) -> ValidatingAdmissionPolicyBinding {
        ValidatingAdmissionPolicyBinding {
            metadata: self.metadata(),
            spec: ValidatingAdmissionPolicyBindingSpec {
                param_ref: Some(ParamRef {
                    name: Some(self.lease.name().to_owned()),
                    namespace: Some(self.lease.namespace().to_owned()),
                    parameter_not_found_action: Some("Allow".to_owned()),
                    ..ParamRef::default()
                }),
                policy_name: self.name.clone().into(),
                validation_actions: vec!["Deny".to_owned()].into(),
                ..ValidatingAdmissionPolicyBindingSpec::default()
            }
            .into(),
        }
    }

    /// All as YAML, for `kubectl apply`: the [anchor](Self::apply), the policy and the binding.
    ///
    /// # Panics
    /// Never: they consist of texts and lists.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        fn yaml(object: &impl Serialize) -> String {
            serde_saphyr::to_string(object).expect("texts and lists are YAML").trim_end().to_owned()
        }
        let anchor = [Kind::Policy, Kind::Binding].map(|kind| yaml(&anchor::wanted(kind)));
        let fence = [yaml(&self.policy()), yaml(&self.binding())];
        let header =
            "# All fences of the cluster share the first two objects. Keep them if you delete the others.\n";
        format!("{header}{}\n---\n{}\n", anchor.join("\n---\n"), fence.join("\n---\n"))
    }

    fn metadata(&self) -> ObjectMeta {
        let pair = |(key, value): (&str, String)| [(key.to_owned(), value)].into();
        ObjectMeta {
            name: Some(self.name.clone()),
            labels: Some(pair((MANAGED_BY.0, MANAGED_BY.1.to_owned()))),
            annotations: Some(pair((LEASE, self.lease.to_string()))),
            ..ObjectMeta::default()
        }
    }

    fn variables(&self) -> Vec<Variable> {
        let variable = |name: &str, expression: String| Variable { name: name.to_owned(), expression };
        let of_spec = |field: &str, missing: &str| {
            format!("has(params.spec) && has(params.spec.{field}) ? params.spec.{field} : {missing}")
        };
        let lease = cel::text(&format!(" the lease {}, and this request comes from ", self.lease));
        let nameless = if self.writers.are_pods() { "a token that names no pod" } else { "a nameless user" };
        vec![
            variable("holder", of_spec("holderIdentity", "''")),
            variable(
                "term",
                format!("params.metadata.uid + '/' + string({})", of_spec("leaseTransitions", "0")),
            ),
            variable("asker", self.writers.asker()),
            variable(
                "holds",
                format!("variables.holder != '' && variables.asker == {}", self.writers.expected()),
            ),
            variable(
                "refusal",
                format!(
                    "'{MARKER}: ' + (variables.holder == '' ? 'no candidate' : '\"' + variables.holder + '\"') + \
                     ' holds' + {lease} + (variables.asker == '' ? '{nameless}' : '\"' + variables.asker + '\"')"
                ),
            ),
        ]
    }

    fn validations() -> Vec<Validation> {
        let validation = |expression: String, message: String| Validation {
            expression,
            message: Some(MARKER.to_owned()),
            message_expression: Some(message),
            reason: Some("Forbidden".to_owned()),
        };
        vec![
            // A probe is always refused. So its answer shows that the fence is in force on the API server that answers,
            // and which term that server knows. This comes first: of several refusals a client gets the first one.
            validation(
                format!("!({})", conditions::is_probe()),
                format!("variables.holds ? '{PASSES}' + variables.term : variables.refusal"),
            ),
            validation("variables.holds".to_owned(), "variables.refusal".to_owned()),
        ]
    }
}
