//! A candidate's place among the others.

use std::{error::Error, fmt, sync::Arc};

/// The longest key, in bytes.
const LONGEST: usize = 253;

/// Lets a candidate take the lease from a live holder that it precedes: the preferred revision of a program, say, or the
/// replicas in the preferred zone. Istio's fork of client-go calls this prioritised election.
///
/// A candidate with a priority writes its key into the lease's annotation `leader.istio.io/holder-key` with each claim, and
/// removes it when it gives the lease up, as Istio does. When it sees a live holder, it asks its comparison whether it
/// precedes that holder's key; a holder without a key has the key `""`. If so, it takes the lease at once, swapping on
/// the version that it has read.
///
/// # Nobody writes twice
/// Rule S6 has a candidate wait until a holder's time is over. Here the *lease* is taken before that, the *gate* is not
/// opened before that: the new holder's gate stays closed until one of these.
///
/// 1. The former holder has acknowledged. A candidate of this crate, with a priority or without, closes its gate when it
///    sees that it was preempted, lets its admitted writes finish, and says so in the lease (annotation
///    `kube-leader-gate/handover`). This takes milliseconds and what is left of those writes; none is cut off.
/// 2. The former holder's time is over, by the duration that it had written: it has crashed, is frozen or cut off, or is
///    somebody else's elector, which knows nothing of this.
///
/// So two candidates of this crate never write at once, as without a priority. **The price is paid with others' electors**:
/// until their time is over nobody may write, so prefer to give all candidates of one lease this crate. In the other
/// direction there is no such rule: an Istio elector that preempts a holder of this crate waits for nothing, and the
/// holder's gate closes when its watch shows it (rule S7), within milliseconds.
///
/// # What is never preempted
/// A holder with the same key; one whose key cannot be read (no text, too long); one whose lease makes no sense; and one
/// that has itself not got past the wait above. A lease that nobody holds, or that has run out, is taken by whoever comes
/// first: a candidate of lower precedence leads until one of higher precedence comes.
///
/// Plain client-go knows no keys: when it takes over a lease that ran out, the key of the holder before it stays there, and
/// counts as its own.
///
/// # Consistency
/// All comparisons on one lease should agree. If two candidates both think that they precede, each waits longer from time to
/// time, from a lease duration up to an hour, before it preempts again, and a warning says so.
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

/// A priority that cannot be: what was given, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrInvalidPriority {
    given: String,
    allowed: String,
}

// === impl Priority ===

impl Priority {
    /// The key of this candidate, and whether it precedes a holder with the key that is handed in (`""` for none).
    ///
    /// `precedes` is asked again with each news of the lease, so it may change its mind; it must not block. If it panics,
    /// the election ends (rule S10).
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
    /// [`ErrInvalidPriority`] when the key is empty, longer than 253 bytes, has control characters, or space at an end.
    pub fn new(
        key: impl Into<String>,
        precedes: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<Self, ErrInvalidPriority> {
        let key = key.into();
        if is_key(&key) {
            return Ok(Self { key: key.into(), precedes: Arc::new(precedes) });
        }
        let allowed = format!("1 to {LONGEST} bytes without control characters or space at an end");
        Err(ErrInvalidPriority { given: key, allowed })
    }

    /// One of several keys, the most preferred first. A holder without a key comes after all of them; one with a key that
    /// is not in the list is left alone, since a newer list may know it.
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
    /// [`ErrInvalidPriority`] when `key` is not in the list, and as [`new`](Self::new).
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

/// Whether a text is fit for a key.
pub(super) fn is_key(text: &str) -> bool {
    let fits = !text.is_empty() && text.len() <= LONGEST;
    fits && text.trim() == text && !text.chars().any(char::is_control)
}

// === impl ErrInvalidPriority ===

impl ErrInvalidPriority {
    /// The key as it was given.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The keys that are allowed, in words.
    #[must_use]
    pub fn allowed(&self) -> &str {
        &self.allowed
    }
}

impl fmt::Display for ErrInvalidPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An over-long one is not repeated whole.
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
    fn refuses_what_is_no_key_with_what_is_allowed() {
        for bad in ["", " ", "a ", "\ta", "a\nb", &"x".repeat(254)] {
            let error = Priority::new(bad, |_| true).unwrap_err().to_string();
            assert!(error.contains(&format!("({} bytes), allowed: 1 to 253 bytes", bad.len())), "{error}");
        }
        assert!(Priority::new("^default", |_| true).is_ok());
        let error = Priority::ranked("c", ["a", "b"]).unwrap_err().to_string();
        assert!(error.contains(r#""c" (1 bytes), allowed: one of ["a", "b"]"#), "{error}");
        assert!(Priority::ranked("", [""]).is_err());
    }

    #[test]
    fn an_equal_key_is_never_preceded() {
        assert!(!Priority::new("a", |_| true).unwrap().precedes("a"));
        assert!(!Priority::ranked("a", ["a", "b", "a"]).unwrap().precedes("a"));
        // What is named twice has the better of its ranks.
        assert!(!Priority::ranked("b", ["a", "b", "a"]).unwrap().precedes("a"));
    }
}
