//! Exemptions that many followers need.

use crate::{
    invalid::ErrInvalid,
    request::{ResourceRequest, Verb},
};
use std::{fmt, str::FromStr};

/// A named set of writes that a policy can permit. Its text form is its name in kebab case, as `dry-run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Preset {
    /// Permits `create` of `subjectaccessreviews`, `localsubjectaccessreviews`, `selfsubjectaccessreviews` and
    /// `selfsubjectrulesreviews` in `authorization.k8s.io`, and of `selfsubjectreviews` in `authentication.k8s.io`.
    ///
    /// These requests are questions: the server stores nothing.
    AccessReviews,
    /// Permits `create` of `tokenreviews` in `authentication.k8s.io`. Such a request asks whose token it is.
    ///
    /// The server stores nothing.
    TokenReviews,
    /// Permits `create` of the subresource `token` of `serviceaccounts` in the core group. Such a request creates a
    /// token for a service account.
    ///
    /// The token stays valid after a loss of leadership.
    TokenRequests,
    /// Permits `create`, `update` and `patch` of `events`, in the core group and in `events.k8s.io`.
    Events,
    /// Permits `create`, `update` and `patch` with `dryRun=All` in the query, on any resource and on its subresources
    /// `status` and `scale`.
    ///
    /// - The whole query must look as a client library writes it: at most 8 pairs and 512 bytes, each pair a key of
    ///   letters and digits, a `=` and a value, and each `dryRun` spelled `dryRun=All`. The API server ignores a
    ///   query with more than 10,000 pairs, empty ones included, and then carries the write out.
    /// - **Not** `delete` and `deletecollection`. If there is a body, as usual clients send it, the server takes the
    ///   options from there. The gate does not read it, so it cannot tell a dry run from a deletion.
    /// - **Not** proxies and other connections, since their query belongs to the backend. **Not** other subresources,
    ///   since an aggregated API may use them for actions.
    /// - An **aggregated API** must implement dry runs by itself. If one of yours ignores the parameter, this preset
    ///   lets its real writes through. Then use a [`Rule`](super::Rule) for each resource instead.
    /// - The server calls admission webhooks. If a webhook declares side effects, the server refuses the request.
    DryRun,
    /// Permits `GET` and `POST` of the subresources `exec`, `attach` and `portforward` of `pods` in the core group.
    ///
    /// The gate does not check an open connection again: it outlives a loss of leadership. What a follower runs
    /// through it can change anything, also in the cluster. The gate does not protect any of that.
    Exec,
}

type Words<T = &'static str> = &'static [T];

/// The subresources of a rule on resources themselves.
const ITSELF: Words = &[""];

/// One part of a [`Preset`]: these verbs on these resources.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PresetRule {
    /// The verbs.
    pub verbs: &'static [Verb],
    /// Empty for any group. The core group is `""`.
    pub groups: &'static [&'static str],
    /// Empty for any resource.
    pub resources: &'static [&'static str],
    /// `""` is the resource itself.
    pub subresources: &'static [&'static str],
    /// Only requests that ask for a dry run.
    pub dry_run: bool,
}

// === impl Preset ===

impl Preset {
    /// All presets.
    pub const ALL: &'static [Self] = &[
        Self::AccessReviews,
        Self::TokenReviews,
        Self::TokenRequests,
        Self::Events,
        Self::DryRun,
        Self::Exec,
    ];

    /// The name of the preset.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AccessReviews => "access-reviews",
            Self::TokenReviews => "token-reviews",
            Self::TokenRequests => "token-requests",
            Self::Events => "events",
            Self::DryRun => "dry-run",
            Self::Exec => "exec",
        }
    }

    /// What the preset permits. The gate reads this too.
    #[must_use]
    pub const fn rules(self) -> &'static [PresetRule] {
        const MUTATIONS: &[Verb] = &[Verb::Create, Verb::Update, Verb::Patch];
        const CREATE: &[Verb] = &[Verb::Create];
        const ACCESS_REVIEWS: &[&str] = &[
            "subjectaccessreviews",
            "localsubjectaccessreviews",
            "selfsubjectaccessreviews",
            "selfsubjectrulesreviews",
        ];
        const AUTHENTICATION: &[&str] = &["authentication.k8s.io"];
        const EXEC: &[&str] = &["exec", "attach", "portforward"];
        const DRY_RUN: PresetRule =
            PresetRule { dry_run: true, ..PresetRule::of(MUTATIONS, &[], &[], &["", "status", "scale"]) };
        match self {
            Self::AccessReviews => {
                const {
                    &[
                        PresetRule::of(CREATE, &["authorization.k8s.io"], ACCESS_REVIEWS, ITSELF),
                        PresetRule::of(CREATE, AUTHENTICATION, &["selfsubjectreviews"], ITSELF),
                    ]
                }
            }
            Self::TokenReviews => {
                const { &[PresetRule::of(CREATE, AUTHENTICATION, &["tokenreviews"], ITSELF)] }
            }
            Self::TokenRequests => {
                const { &[PresetRule::of(CREATE, &[""], &["serviceaccounts"], &["token"])] }
            }
            Self::Events => {
                const { &[PresetRule::of(MUTATIONS, &["", "events.k8s.io"], &["events"], ITSELF)] }
            }
            Self::DryRun => &[DRY_RUN],
            Self::Exec => const { &[PresetRule::of(&[Verb::Connect], &[""], &["pods"], EXEC)] },
        }
    }

    pub(super) fn matches(self, request: &ResourceRequest<'_>) -> bool {
        self.rules().iter().any(|rule| rule.matches(request))
    }
}

// === impl PresetRule ===

impl PresetRule {
    const fn of(verbs: Words<Verb>, groups: Words, resources: Words, subresources: Words) -> Self {
        Self { verbs, groups, resources, subresources, dry_run: false }
    }

    fn matches(&self, request: &ResourceRequest<'_>) -> bool {
        let (group, resource, subresource) = request.target();
        self.verbs.contains(&request.verb)
            && (self.groups.is_empty() || self.groups.contains(&group))
            && (self.resources.is_empty() || self.resources.contains(&resource))
            && self.subresources.contains(&subresource)
            && (!self.dry_run || request.asks_for_dry_run())
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Preset {
    type Err = ErrInvalid;

    fn from_str(text: &str) -> Result<Self, ErrInvalid> {
        let named = Self::ALL.iter().find(|preset| preset.as_str() == text);
        let allowed = || Self::ALL.iter().map(|preset| preset.as_str()).collect::<Vec<_>>().join(", ");
        named.copied().ok_or_else(|| ErrInvalid::new("invalid preset:", text, allowed()))
    }
}
