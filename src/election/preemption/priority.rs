//! A candidate's precedence among the others.

use std::{error::Error, fmt, sync::Arc};

/// The longest key, in bytes.
const LONGEST: usize = 253;

/// Lets a candidate take the lease from a live holder that it precedes. Use it to prefer a revision of a program, or
/// the replicas in one zone. Istio's fork of client-go calls this prioritised election.
///
/// A candidate with a priority writes its key into the lease's annotation `leader.istio.io/holder-key` with each
/// claim. It removes the key when it releases the lease, as Istio does. When it sees a live holder, it checks whether
/// it precedes that holder's key; a holder without a key has the key `""`. If it does, it takes the lease at once, by
/// a swap on the version that it has read.
///
/// # Two candidates never write at once
/// By [rule S6](crate::guide::guarantees#s6-compare-and-swap-only), a candidate waits until a holder's time is over.
/// With a priority it takes the *lease* earlier, but it does not open its *gate* earlier. The new holder's gate stays
/// closed until one of these happens.
///
/// 1. The former holder acknowledges. Each candidate of this crate does so, with a priority or without. When it sees
///    that it was preempted, it closes its gate, lets its admitted writes finish, and records that in the lease
///    (annotation `kube-leader-gate/handover`). This takes a few milliseconds and the rest of those writes. No write
///    is cut off.
/// 2. The former holder's time is over, by the duration that it had written into the lease. It has crashed, is frozen
///    or cut off, or runs another elector that does not acknowledge.
///
/// So two candidates of this crate never write at once, as without a priority. **This has a price with other
/// electors**: until their time is over, no candidate may write. Prefer to use this crate for all candidates of one
/// lease. The other direction has no such rule: an Istio elector that preempts a holder of this crate does not wait.
/// The holder's gate closes when its watch shows the preemption
/// ([rule S7](crate::guide::guarantees#s7-another-holder-closes-the-gate)), within milliseconds.
///
/// # What is never preempted
/// A candidate never preempts a holder with the same key, a holder whose key it cannot read (not text, or too long),
/// a holder whose lease makes no sense, or a holder that still waits as above. If a lease is free or has expired, the
/// first candidate takes it: a candidate of lower precedence leads until one of higher precedence comes.
///
/// Plain client-go does not know keys. When it takes over an expired lease, the former holder's key stays in the
/// lease and counts as its own.
///
/// # Consistency
/// All comparisons on one lease should agree. If two candidates both think that they precede the other, each waits
/// longer each time before it preempts again, from a lease duration up to an hour. The log then has a warning.
///
/// ```no_run
/// use kube_leader_gate::{Election, election::Priority};
///
/// # fn example(config: &kube_client::Config) -> Result<(), Box<dyn std::error::Error>> {
/// let revision = std::env::var("REVISION")?;
/// let election = Election::builder("my-namespace", "my-controller")
///     .priority(Priority::ranked(revision, ["stable", "canary"])?)
///     .build(config)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Priority {
    key: Arc<str>,
    precedes: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

/// The priority does not work. The error says what was given and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrInvalidPriority {
    given: String,
    allowed: String,
}

// === impl Priority ===

impl Priority {
    /// Makes a priority from this candidate's key and a comparison. `precedes` receives a holder's key (`""` for
    /// none) and returns whether this candidate precedes it.
    ///
    /// The election calls `precedes` with each news of the lease, so its answer may change. It must not block. If it
    /// panics, the election ends ([rule S10](crate::guide::guarantees#s10-a-dead-election-closes-the-gate)).
    ///
    /// ```
    /// use kube_leader_gate::election::Priority;
    ///
    /// // The higher generation precedes; holders that say none are left alone.
    /// let mine = 7;
    /// let priority = Priority::new(mine.to_string(), move |holder| holder.parse().is_ok_and(|its: u64| mine > its))?;
    /// assert!(priority.precedes("6") && !priority.precedes("8") && !priority.precedes(""));
    /// # Ok::<(), kube_leader_gate::election::ErrInvalidPriority>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrInvalidPriority`] if the key is empty, is longer than 253 bytes, has control characters, or begins or
    /// ends with a space.
    pub fn new(
        key: impl Into<String>,
        precedes: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<Self, ErrInvalidPriority> {
        let key = key.into();
        if is_key(&key) {
            return Ok(Self { key: key.into(), precedes: Arc::new(precedes) });
        }
        let allowed = format!("1 to {LONGEST} bytes without control characters or a space at either end");
        Err(ErrInvalidPriority { given: key, allowed })
    }

    /// Makes a priority from a list of keys, with the most preferred first. A holder without a key comes after all of
    /// them. A holder whose key is not in the list is never preempted, since a newer list may know the key.
    ///
    /// ```
    /// use kube_leader_gate::election::Priority;
    ///
    /// let canary = Priority::ranked("canary", ["stable", "canary", "old"])?;
    /// assert!(canary.precedes("old") && canary.precedes(""));
    /// assert!(!canary.precedes("stable") && !canary.precedes("canary") && !canary.precedes("unheard of"));
    /// # Ok::<(), kube_leader_gate::election::ErrInvalidPriority>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrInvalidPriority`] if `key` is not in the list, and as for [`new`](Self::new).
    pub fn ranked<K: Into<String>>(
        key: impl Into<String>,
        most_preferred_first: impl IntoIterator<Item = K>,
    ) -> Result<Self, ErrInvalidPriority> {
        let key = key.into();
        let mut ranks: Vec<String> = most_preferred_first.into_iter().map(Into::into).collect();
        let Some(mine) = ranks.iter().position(|it| *it == key) else {
            return Err(ErrInvalidPriority { given: key, allowed: format!("one of {ranks:?}") });
        };
        let lower = ranks.split_off(mine + 1);
        Self::new(key, move |holder| {
            holder.is_empty() || lower.iter().any(|it| it == holder) && !ranks.iter().any(|it| it == holder)
        })
    }

    /// The key of this candidate.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whether this candidate may take the lease from a live holder with this key (`""` for none).
    #[must_use]
    pub fn precedes(&self, holder_key: &str) -> bool {
        *holder_key != *self.key && (self.precedes)(holder_key)
    }
}

impl fmt::Debug for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Priority").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Whether a text can be a key.
pub(in crate::election) fn is_key(text: &str) -> bool {
    let fits = !text.is_empty() && text.len() <= LONGEST;
    fits && text.trim() == text && !text.chars().any(char::is_control)
}

// === impl ErrInvalidPriority ===

impl ErrInvalidPriority {
    /// The key, as given.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// Describes the allowed keys in words.
    #[must_use]
    pub fn allowed(&self) -> &str {
        &self.allowed
    }
}

impl fmt::Display for ErrInvalidPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Show only the beginning of a key that is too long.
        let shown: String = self.given.chars().take(64).collect();
        let Self { given, allowed } = self;
        write!(f, "invalid key of a priority: {shown:?} ({} bytes), allowed: {allowed}", given.len())
    }
}

impl Error for ErrInvalidPriority {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_key_error_lists_allowed_values() {
        for bad in ["", " ", "a ", "\ta", "a\nb", &"x".repeat(254)] {
            let error = Priority::new(bad, |_| true).unwrap_err();
            assert_eq!(error.given(), bad);
            assert!(error.allowed().starts_with("1 to 253 bytes"), "{error}");
            let error = error.to_string();
            assert!(error.contains(&format!("({} bytes), allowed: 1 to 253 bytes", bad.len())), "{error}");
        }
        assert!(Priority::new("^default", |_| true).is_ok());
        let error = Priority::ranked("c", ["a", "b"]).unwrap_err().to_string();
        assert!(error.contains(r#""c" (1 bytes), allowed: one of ["a", "b"]"#), "{error}");
        assert!(Priority::ranked("", [""]).is_err());
    }

    #[test]
    fn a_key_never_precedes_itself() {
        assert!(!Priority::new("a", |_| true).unwrap().precedes("a"));
        assert!(!Priority::ranked("a", ["a", "b", "a"]).unwrap().precedes("a"));
        // If the list has a key twice, its better rank counts.
        assert!(!Priority::ranked("b", ["a", "b", "a"]).unwrap().precedes("a"));
    }
}
