//! Results, one line of JSON each. They stay when a run is cut short.

use crate::{failure::Failure, peer::Peer, place};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{ErrorKind, Write},
    marker::PhantomData,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

/// The names of the files: the last play, and the last measurement of costs.
pub(crate) const PLAY: &str = "play";
pub(crate) const COST: &str = "cost";

/// What is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scenario {
    Handover,
    Crash,
    Rollout,
    Steady,
}

/// One round of one peer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Round {
    pub(crate) peer: Peer,
    pub(crate) scenario: Scenario,
    pub(crate) number: u32,
    /// By name, in milliseconds or per minute. Empty after a failure.
    pub(crate) values: BTreeMap<String, f64>,
    pub(crate) failure: Option<String>,
}

/// What a peer, or one way of building or running it, costs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) table: Table,
    /// The row's name.
    pub(crate) what: String,
    pub(crate) values: BTreeMap<String, f64>,
    pub(crate) failure: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Table {
    Build,
    Idle,
    Many,
}

/// The conditions of a run: the first line of its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Conditions {
    /// The date, the machine and its load, in words.
    pub(crate) machine: String,
    /// The command with its settings.
    pub(crate) command: String,
}

/// The file of a run.
#[derive(Debug)]
pub(crate) struct Records<T> {
    file: Mutex<File>,
    of: PhantomData<fn(T)>,
}

impl<T: Serialize + DeserializeOwned> Records<T> {
    /// Begins the file anew.
    pub(crate) fn create(name: &str, conditions: &Conditions) -> Result<Self, Failure> {
        let path = path(name);
        fs::create_dir_all(place::output())?;
        let mut file = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        writeln!(file, "{}", serde_json::to_string(conditions)?)?;
        Ok(Self { file: Mutex::new(file), of: PhantomData })
    }

    pub(crate) fn add(&self, record: &T) -> Result<(), Failure> {
        let line = serde_json::to_string(record)?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(writeln!(file, "{line}")?)
    }
}

/// Reads the last run. `None` when there was none.
pub(crate) fn last<T: DeserializeOwned>(name: &str) -> Result<Option<(Conditions, Vec<T>)>, Failure> {
    let path = path(name);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|error| format!("{}: {error}", path.display()))?,
    };
    let mut lines = text.lines();
    let conditions = serde_json::from_str(lines.next().ok_or("an empty file of results")?)?;
    let records = lines.map(serde_json::from_str).collect::<Result<_, _>>()?;
    Ok(Some((conditions, records)))
}

fn path(name: &str) -> PathBuf {
    place::output().join(format!("{name}.jsonl"))
}
