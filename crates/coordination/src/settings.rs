//! How a program takes part in a coordinated election.

use kube_client::Client;
use kube_leader_gate::{Identity, election::Priority, lease::LeaseName};
use semver::Version;
use std::{error::Error, fmt};

const OLDEST: &str = "OldestEmulationVersion";

/// What the candidate tells the coordinator about itself: its versions, and how to choose among candidates.
///
/// ```no_run
/// use kube_client::{Client, Config};
/// use kube_leader_gate::Election;
/// use kube_leader_gate_coordination::{Coordinated, Coordination};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let config = Config::infer().await?;
/// let client = Client::try_from(config.clone())?; // without a gate
/// let election = Election::builder("my-namespace", "my-controller")
///     .coordinated(Coordination::new(client, env!("CARGO_PKG_VERSION"))?)
///     .build(&config)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Coordination {
    pub(crate) client: Client,
    pub(crate) versions: Versions,
}

/// What the candidate tells the coordinator about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    binary: Version,
    emulation: Version,
    strategy: String,
}

/// The settings of a coordinated election do not work. The error says what was given and what is allowed.
///
/// It comes from [`Coordination`]. If a setting does not fit the election, it comes in an
/// [`ErrBuild::Lock`](kube_leader_gate::election::ErrBuild::Lock), when the election is built. Nothing has begun.
/// Correct the setting: a retry with the same one fails again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrInvalidCoordination {
    what: &'static str,
    given: String,
    allowed: &'static str,
}

// === impl Coordination ===

impl Coordination {
    /// Takes part with this version of the program. Its emulation version is the same, and its strategy is
    /// `OldestEmulationVersion`: the coordinator chooses the candidate with the lowest emulation version, then the one
    /// with the lowest binary version, then the one whose `LeaseCandidate` is the oldest.
    ///
    /// `client` keeps this candidate's `LeaseCandidate` object. Use a separate client without a gate: a gate would
    /// reject a follower's answer to a ping.
    ///
    /// # Errors
    /// [`ErrInvalidCoordination`] if this is no semantic version above `0.0.0`.
    pub fn new(client: Client, binary_version: impl AsRef<str>) -> Result<Self, ErrInvalidCoordination> {
        Ok(Self { client, versions: Versions::new(binary_version.as_ref())? })
    }

    /// Sets the version whose behaviour this program emulates. During an upgrade, let a new program emulate the old
    /// version until no replica of the old version is left.
    ///
    /// # Errors
    /// [`ErrInvalidCoordination`] if this is no semantic version above `0.0.0`, or is above the binary version.
    pub fn emulating(self, version: impl AsRef<str>) -> Result<Self, ErrInvalidCoordination> {
        Ok(Self { versions: self.versions.emulating(version.as_ref())?, ..self })
    }

    /// Sets the name of another strategy, for a coordinator of your own. The coordinator of the API server then
    /// creates the lease without a holder, and yours names one. It must leave `acquireTime` empty when it does.
    ///
    /// The strategy of the candidate with the highest binary version counts. If candidates with that version have
    /// different strategies, the coordinator of the API server chooses none of them.
    ///
    /// # Errors
    /// [`ErrInvalidCoordination`] if this is neither `OldestEmulationVersion` nor a name with a domain before it, such
    /// as `example.com/nearest`.
    pub fn strategy(self, name: impl Into<String>) -> Result<Self, ErrInvalidCoordination> {
        Ok(Self { versions: self.versions.strategy(name.into())?, ..self })
    }

    /// The version of the program.
    #[must_use]
    pub fn binary_version(&self) -> String {
        self.versions.binary_version()
    }

    /// The version whose behaviour the program emulates.
    #[must_use]
    pub fn emulation_version(&self) -> String {
        self.versions.emulation_version()
    }

    /// The name of the strategy.
    #[must_use]
    pub fn strategy_name(&self) -> &str {
        self.versions.strategy_name()
    }
}

impl fmt::Debug for Coordination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coordination").field("versions", &self.versions).finish_non_exhaustive()
    }
}

// === impl Versions ===

impl Versions {
    pub(crate) fn new(binary: &str) -> Result<Self, ErrInvalidCoordination> {
        let binary = version("binary version", binary)?;
        Ok(Self { emulation: binary.clone(), binary, strategy: OLDEST.to_owned() })
    }

    pub(crate) fn emulating(self, given: &str) -> Result<Self, ErrInvalidCoordination> {
        let emulation = version("emulation version", given)?;
        if emulation.cmp_precedence(&self.binary).is_gt() {
            return Err(refused("emulation version", given, "the binary version or a lower one"));
        }
        Ok(Self { emulation, ..self })
    }

    fn strategy(self, strategy: String) -> Result<Self, ErrInvalidCoordination> {
        if strategy != OLDEST && !strategy.split_once('/').is_some_and(is_qualified) {
            let allowed = "`OldestEmulationVersion`, or a domain, a slash and 1 to 63 of A-Z, a-z, 0-9, '-', '_' and '.', \
                           with a letter or digit at both ends";
            return Err(refused("strategy", strategy, allowed));
        }
        Ok(Self { strategy, ..self })
    }

    pub(crate) fn binary_version(&self) -> String {
        self.binary.to_string()
    }

    pub(crate) fn emulation_version(&self) -> String {
        self.emulation.to_string()
    }

    pub(crate) fn strategy_name(&self) -> &str {
        &self.strategy
    }
}

/// Checks the election: its `LeaseCandidate` has the name of the candidate, and the coordinator alone chooses.
pub(crate) fn check(identity: &Identity, priority: Option<&Priority>) -> Result<(), ErrInvalidCoordination> {
    if let Some(priority) = priority {
        return Err(refused("priority", priority.key(), "none, since the coordinator chooses by version"));
    }
    let name = identity.as_str();
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if !name.bytes().all(inside) || name == "." || name.starts_with("..") {
        let allowed =
            "the name of a LeaseCandidate: A-Z, a-z, 0-9, '-', '_' and '.', and not '..' at the beginning";
        return Err(refused("identity", name, allowed));
    }
    Ok(())
}

fn version(what: &'static str, given: &str) -> Result<Version, ErrInvalidCoordination> {
    let parsed = Version::parse(given).ok().filter(|it| *it != Version::new(0, 0, 0));
    parsed.ok_or_else(|| {
        refused(what, given, "a semantic version above 0.0.0, such as 1.4.0, without a leading `v`")
    })
}

/// Whether these are the parts of a qualified name, as Kubernetes defines it.
fn is_qualified((domain, name): (&str, &str)) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let bytes = name.as_bytes();
    let is_name =
        bytes.len() <= 63 && bytes.iter().all(inside) && is_end(bytes.first()) && is_end(bytes.last());
    // A lease has a name of the same form.
    is_name && LeaseName::new("default", domain).is_ok()
}

fn refused(what: &'static str, given: impl Into<String>, allowed: &'static str) -> ErrInvalidCoordination {
    ErrInvalidCoordination { what, given: given.into(), allowed }
}

// === impl ErrInvalidCoordination ===

impl ErrInvalidCoordination {
    /// The refused setting: `binary version`, `emulation version`, `strategy`, `identity` or `priority`.
    #[must_use]
    pub const fn what(&self) -> &'static str {
        self.what
    }

    /// The refused value, as given.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The values that are allowed, in words.
    #[must_use]
    pub const fn allowed(&self) -> &'static str {
        self.allowed
    }
}

impl fmt::Display for ErrInvalidCoordination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "invalid {} of a coordinated election: {:?}, allowed: {}",
            self.what, self.given, self.allowed
        )
    }
}

impl Error for ErrInvalidCoordination {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_the_api_refuses_are_refused() {
        for bad in ["", "1", "1.2", "v1.2.3", "1.2.3.4", "01.2.3", "0.0.0", " 1.2.3"] {
            let error = Versions::new(bad).unwrap_err();
            assert_eq!((error.what(), error.given()), ("binary version", bad));
            assert!(error.to_string().ends_with(&format!("allowed: {}", error.allowed())), "{error}");
            assert!(!error.allowed().is_empty());
        }
        for good in ["0.1.0", "1.2.3", "1.2.3-rc.1", "1.2.3+build.5"] {
            assert_eq!(Versions::new(good).unwrap().binary_version(), good);
        }
    }

    #[test]
    fn emulation_version_above_the_binary_is_refused() {
        let versions = Versions::new("1.5.0").unwrap();
        for bad in ["1.5.1", "2.0.0"] {
            assert_eq!(versions.clone().emulating(bad).unwrap_err().what(), "emulation version", "{bad}");
        }
        for good in ["1.5.0", "1.4.9", "1.5.0-rc.1", "1.5.0+other"] {
            versions.clone().emulating(good).unwrap();
        }
    }

    #[test]
    fn strategy_needs_a_domain_or_the_known_name() {
        let versions = || Versions::new("1.0.0").unwrap();
        for bad in ["", "oldest", "/oldest", "example.com/", "Example.com/a", "a/b/c", "example.com/-a"] {
            assert_eq!(versions().strategy(bad.into()).unwrap_err().given(), bad);
        }
        for good in [OLDEST, "example.com/nearest", "a/B_c.d-e"] {
            assert_eq!(versions().strategy(good.into()).unwrap().strategy_name(), good);
        }
    }

    #[test]
    fn odd_identity_is_refused() {
        let check =
            |identity: &str| check(&Identity::new(identity).unwrap(), None).map_err(|error| error.what());
        assert_eq!(check("pod-1_0a.b"), Ok(()));
        for odd in ["a/b", "a b", "..a", "a:b", "."] {
            assert_eq!(check(odd), Err("identity"), "{odd}");
        }
    }
}
