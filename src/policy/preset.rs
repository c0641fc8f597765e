//! Exemptions that many followers need.

use crate::request::{ResourceRequest, Verb};
use std::{error::Error, fmt, str::FromStr};

/// A named set of writes that a policy can permit. Its text form is its name in kebab case.
///
/// ```
/// use kube_leader_gate::policy::Preset;
///
/// assert_eq!("dry-run".parse::<Preset>()?, Preset::DryRun);
/// assert_eq!(Preset::AccessReviews.to_string(), "access-reviews");
/// # Ok::<(), kube_leader_gate::policy::ErrInvalidPreset>(())
/// ```
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
    ///   options from there and ignores the query. The gate does not read the body, so it cannot tell a dry run from
    ///   a deletion.
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

/// One part of a preset: these verbs on these resources.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    pub(crate) verbs: &'static [Verb],
    /// Empty for any group.
    pub(crate) groups: &'static [&'static str],
    /// Empty for any resource.
    pub(crate) resources: &'static [&'static str],
    /// `""` is the resource itself.
    pub(crate) subresources: &'static [&'static str],
    /// Only requests that ask for a dry run.
    pub(crate) dry_run: bool,
}

/// The text is not the name of a [`Preset`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrInvalidPreset {
    given: String,
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

    /// What the preset permits. The gate and the server-side fence both read this.
    pub(crate) const fn grants(self) -> &'static [Grant] {
        const MUTATIONS: &[Verb] = &[Verb::Create, Verb::Update, Verb::Patch];
        match self {
            Self::AccessReviews => {
                const {
                    &[
                        Grant {
                            groups: &["authorization.k8s.io"],
                            resources: &[
                                "subjectaccessreviews",
                                "localsubjectaccessreviews",
                                "selfsubjectaccessreviews",
                                "selfsubjectrulesreviews",
                            ],
                            ..Grant::of(&[Verb::Create])
                        },
                        Grant {
                            groups: &["authentication.k8s.io"],
                            resources: &["selfsubjectreviews"],
                            ..Grant::of(&[Verb::Create])
                        },
                    ]
                }
            }
            Self::TokenReviews => {
                const {
                    &[Grant {
                        groups: &["authentication.k8s.io"],
                        resources: &["tokenreviews"],
                        ..Grant::of(&[Verb::Create])
                    }]
                }
            }
            Self::TokenRequests => {
                const {
                    &[Grant {
                        groups: &[""],
                        resources: &["serviceaccounts"],
                        subresources: &["token"],
                        ..Grant::of(&[Verb::Create])
                    }]
                }
            }
            Self::Events => {
                const {
                    &[Grant {
                        groups: &["", "events.k8s.io"],
                        resources: &["events"],
                        ..Grant::of(MUTATIONS)
                    }]
                }
            }
            Self::DryRun => {
                const { &[Grant { subresources: &["", "status", "scale"], dry_run: true, ..Grant::of(MUTATIONS) }] }
            }
            Self::Exec => {
                const {
                    &[Grant {
                        groups: &[""],
                        resources: &["pods"],
                        subresources: &["exec", "attach", "portforward"],
                        ..Grant::of(&[Verb::Connect])
                    }]
                }
            }
        }
    }

    pub(super) fn matches(self, request: &ResourceRequest<'_>) -> bool {
        self.grants().iter().any(|grant| grant.matches(request))
    }
}

// === impl Grant ===

impl Grant {
    /// These verbs on any resource itself.
    const fn of(verbs: &'static [Verb]) -> Self {
        Self { verbs, groups: &[], resources: &[], subresources: &[""], dry_run: false }
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
    type Err = ErrInvalidPreset;

    fn from_str(text: &str) -> Result<Self, ErrInvalidPreset> {
        let named = Self::ALL.iter().find(|preset| preset.as_str() == text);
        named.copied().ok_or_else(|| ErrInvalidPreset { given: text.to_owned() })
    }
}

// === impl ErrInvalidPreset ===

impl ErrInvalidPreset {
    /// The text, as given.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The names of all presets, separated by commas.
    #[must_use]
    pub fn allowed(&self) -> String {
        Preset::ALL.iter().map(|preset| preset.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for ErrInvalidPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid preset: {:?}, allowed: {}", self.given, self.allowed())
    }
}

impl Error for ErrInvalidPreset {}
