//! What this crate writes into the annotations of a lease, and what it reads there.

use crate::{
    election::priority::is_key,
    lease::{Identity, LONGEST_SANE, micro_time},
};
use jiff::Timestamp;
use serde_json::Value;
use std::{collections::BTreeMap, fmt, time::Duration};

/// Says which process wrote the last claim or release: `PROCESS TIME UID SECONDS POD NAME`.
pub const CLAIM: &str = "kube-leader-gate/claim";
/// Lists the processes that may still write, and how long from this claim on: `{"NAME\nPROCESS": MILLISECONDS}`. The holder's gate
/// stays shut meanwhile. The number of the process is there because two processes may have one name, and then the word of one says
/// nothing of the other. A holder of another elector has no such number.
///
/// Each claim has a list. An empty list says that every earlier holder has stopped, so a claim without a list says nothing.
pub const WAITS_FOR: &str = "kube-leader-gate/waits-for";
/// Asks the holder to release the lease: the name of the candidate that wants it, and on a second line its key. A person
/// writes the name alone.
pub const ASKED: &str = "kube-leader-gate/asked";

/// Stands in a claim in the place of an empty word.
const NONE: &str = "-";

/// The machine does not read an annotation that has more bytes.
const LONGEST: usize = 64 * 1024;

/// Who wrote a claim or a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    /// A number that the process drew when it began. No other process has it.
    pub(super) process: u64,
    /// The `renewTime` that the claim wrote. Another elector writes another time and keeps the annotation, so then the claim
    /// is void.
    pub(super) time: Timestamp,
    /// The uid of the object that the claim was written into, so a copy in another object is void. Empty if the claim created the
    /// lease.
    pub(super) uid: String,
    /// How long the holder counts on this claim. If an edit shortens the duration in the lease, others still wait so long.
    pub(super) lasts: Duration,
    /// The uid of the pod in which the process runs. Empty if the process does not know it.
    pub(super) pod: String,
    /// The name of the candidate that wrote it. If the lease names another holder, a person has written that one.
    pub(super) name: String,
}

/// A candidate that wants the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) who: Identity,
    /// The key of its priority. If a person moves leadership by hand, the question has none.
    pub(super) key: Option<String>,
}

/// Who may still write, and how long.
pub(super) type WaitsFor = BTreeMap<String, Duration>;

/// The name of a process of this crate in a [`WAITS_FOR`] list.
pub(super) fn writer(name: &str, process: u64) -> String {
    format!("{name}\n{process:x}")
}

/// Reads the text of an annotation. None if it is missing, is no text, or is too long.
pub(super) fn text(value: Option<&Value>) -> Option<&str> {
    value?.as_str().filter(|text| text.len() <= LONGEST)
}

/// Reads [`WAITS_FOR`]. None if it is missing or makes no sense: then this process does not know whom the holder waits for.
pub(super) fn read_waits_for(value: Option<&Value>) -> Option<WaitsFor> {
    let rests: BTreeMap<String, u64> = serde_json::from_str(text(value)?).ok()?;
    let sane = |millis: u64| Duration::from_millis(millis).min(LONGEST_SANE);
    Some(rests.into_iter().map(|(who, millis)| (who, sane(millis))).collect())
}

/// Writes [`WAITS_FOR`]. A part of a millisecond counts as a whole one.
pub(super) fn write_waits_for(rests: &WaitsFor) -> String {
    let millis = |rest: &Duration| rest.as_nanos().div_ceil(1_000_000);
    let rests: BTreeMap<_, _> = rests.iter().map(|(who, rest)| (who, millis(rest))).collect();
    serde_json::to_string(&rests).unwrap_or_default()
}

// === impl Claim ===

impl Claim {
    /// The name of its process in a [`WAITS_FOR`] list.
    pub(super) fn writer(&self) -> String {
        writer(&self.name, self.process)
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        let [process, time, uid, lasts, pod, name] =
            text.splitn(6, ' ').collect::<Vec<_>>().try_into().ok()?;
        let lasts = lasts.strip_suffix('s')?.parse().ok()?;
        let word = |text: &str| if text == NONE { String::new() } else { text.to_owned() };
        Some(Self {
            process: u64::from_str_radix(process, 16).ok()?,
            time: time.parse().ok()?,
            uid: word(uid),
            lasts: Duration::from_secs(lasts).min(LONGEST_SANE),
            pod: word(pod),
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [uid, pod] = [&self.uid, &self.pod].map(|text| if text.is_empty() { NONE } else { text });
        let (time, lasts) = (micro_time(self.time), self.lasts.as_secs());
        write!(f, "{:016x} {time} {uid} {lasts}s {pod} {}", self.process, self.name)
    }
}

// === impl Question ===

impl Question {
    pub(super) fn read(text: &str) -> Option<Self> {
        // Neither a name nor a key has a line break. If the key makes no sense, there is no question.
        let (who, key) = text.split_once('\n').map_or((text, None), |(who, key)| (who, Some(key.to_owned())));
        let is_sane = key.as_deref().is_none_or(|key| key.is_empty() || is_key(key));
        is_sane.then_some(Self { who: Identity::new(who).ok()?, key })
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.who)?;
        self.key.as_ref().map_or(Ok(()), |key| write!(f, "\n{key}"))
    }
}
