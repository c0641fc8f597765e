//! The priority of a candidate: the holders that it may ask for the lease.

use crate::{invalid::ErrInvalid, lease::LeaseRecord};
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The longest key, in bytes.
const LONGEST: usize = 253;
const KEY: &str = "invalid key of a priority:";

/// The annotation with the holder's key. The name comes from Istio.
pub const HOLDER_KEY: &str = "leader.istio.io/holder-key";

/// Lets a candidate ask a live holder for the lease, if the candidate precedes this holder. Use it to prefer one
/// revision of a program, or the replicas in one zone. Istio's fork of client-go calls this prioritised election.
///
/// A candidate with a priority writes its key into the lease's annotation `leader.istio.io/holder-key` while it holds
/// the lease, as Istio does. When the candidate sees a live holder whose key it precedes (`""` for a holder without a
/// key), it writes its own name and key into the lease. If the holder uses this crate, it ends its term in good order
/// and releases the lease, unless the holder itself precedes that key. So two candidates of this crate never write at
/// once. The two must agree on which of them precedes the other. If the holder uses another elector, it cannot be
/// asked: the candidate takes the lease, and keeps its gate closed until the time of this holder is over. The
/// [guide](crate::guide::timing#a-preferred-leader) says what this costs, and how a person moves leadership by hand.
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
    /// The comparison has panicked, and is not called again.
    has_panicked: Arc<AtomicBool>,
}

// === impl Priority ===

impl Priority {
    /// Makes a priority from this candidate's key and a comparison. `precedes` receives a holder's key (`""` for
    /// none) and returns whether this candidate precedes it.
    ///
    /// The election calls `precedes` with each news of the lease, so its answer may change. `precedes` must not block.
    /// Another candidate or a person has written the key that `precedes` receives, so expect any text that can be a
    /// key. If `precedes` panics, the log says so, and from then on this candidate precedes no other one.
    ///
    /// ```
    /// use kube_leader_gate::election::Priority;
    ///
    /// // The higher generation precedes; holders that say none are left alone.
    /// let mine = 7;
    /// let priority = Priority::new(mine.to_string(), move |holder| holder.parse().is_ok_and(|its: u64| mine > its))?;
    /// assert!(priority.precedes("6") && !priority.precedes("8") && !priority.precedes(""));
    /// # Ok::<(), kube_leader_gate::ErrInvalid>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrInvalid`] if the key is empty, is longer than 253 bytes, has control characters, or begins or
    /// ends with a space.
    pub fn new(
        key: impl Into<String>,
        precedes: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<Self, ErrInvalid> {
        let key = key.into();
        if is_key(&key) {
            return Ok(Self { key: key.into(), precedes: Arc::new(precedes), has_panicked: Arc::default() });
        }
        let allowed = format!("1 to {LONGEST} bytes without control characters or a space at either end");
        Err(ErrInvalid::of_text(KEY, &key, allowed))
    }

    /// Makes a priority from a list of keys, with the most preferred first. A holder without a key comes after all of
    /// them. This candidate never asks a holder whose key is not in the list, since that key may be in a newer list.
    ///
    /// ```
    /// use kube_leader_gate::election::Priority;
    ///
    /// let canary = Priority::ranked("canary", ["stable", "canary", "old"])?;
    /// assert!(canary.precedes("old") && canary.precedes(""));
    /// assert!(!canary.precedes("stable") && !canary.precedes("canary") && !canary.precedes("unheard of"));
    /// # Ok::<(), kube_leader_gate::ErrInvalid>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrInvalid`] if `key` is not in the list, and as for [`new`](Self::new).
    pub fn ranked<K: Into<String>>(
        key: impl Into<String>,
        most_preferred_first: impl IntoIterator<Item = K>,
    ) -> Result<Self, ErrInvalid> {
        let key = key.into();
        let mut ranks: Vec<String> = most_preferred_first.into_iter().map(Into::into).collect();
        let Some(mine) = ranks.iter().position(|rank| *rank == key) else {
            return Err(ErrInvalid::of_text(KEY, &key, format_args!("one of {ranks:?}")));
        };
        let lower = ranks.split_off(mine + 1);
        Self::new(key, move |holder| {
            holder.is_empty()
                || lower.iter().any(|key| key == holder) && !ranks.iter().any(|key| key == holder)
        })
    }

    /// The key of this candidate.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whether this candidate may ask a live holder with this key for the lease (`""` for none).
    #[must_use]
    pub fn precedes(&self, holder_key: &str) -> bool {
        if *holder_key == *self.key || self.has_panicked.load(Ordering::Relaxed) {
            return false;
        }
        // No content of the lease may end the election (rule S14).
        catch_unwind(AssertUnwindSafe(|| (self.precedes)(holder_key))).unwrap_or_else(|_| {
            self.has_panicked.store(true, Ordering::Relaxed);
            tracing::error!(
                key = holder_key,
                "the comparison of the priority panicked; this candidate precedes no other one from now on"
            );
            false
        })
    }
}

impl fmt::Debug for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Priority").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The holder's key; empty if it has none. None if the key makes no sense.
pub fn holder_key(record: &LeaseRecord) -> Option<&str> {
    match record.annotation(HOLDER_KEY) {
        None => Some(""),
        Some(key) => key.as_str().filter(|key| key.is_empty() || is_key(key)),
    }
}

/// Whether a text can be a key.
pub fn is_key(text: &str) -> bool {
    let fits = !text.is_empty() && text.len() <= LONGEST;
    fits && text.trim() == text && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_key_error_lists_allowed_values() {
        for bad in ["", " ", "a ", "\ta", "a\nb", &"x".repeat(254)] {
            let error = Priority::new(bad, |_| true).unwrap_err();
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
