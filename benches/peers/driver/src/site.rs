//! The API server of a run, and its audit log as it grows.

use crate::{failure::Failure, ledger::Ledger};
use jiff::Timestamp;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use test_support::apiserver::{Cluster, assets, is_there};
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
    time::{sleep, timeout},
};

/// Times come from the log itself, so this delays no measurement.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) cluster: Cluster,
    ledgers: Arc<Mutex<HashMap<String, Ledger>>>,
    /// Ends with its sender, when the log can no longer be read.
    grown: watch::Receiver<()>,
    quiet: Arc<tokio::sync::Mutex<()>>,
    _reader: JoinSet<()>,
}

/// Keeps other lanes from signals and starts, until it is dropped or its time is over.
#[derive(Debug)]
pub(crate) struct Quiet(#[expect(dead_code, reason = "it is dropped")] oneshot::Sender<()>);

impl Site {
    pub(crate) async fn open() -> Result<Self, Failure> {
        is_there()?;
        let cluster = Cluster::start(assets()).await;
        let ledgers = Arc::<Mutex<HashMap<String, Ledger>>>::default();
        let (sender, grown) = watch::channel(());
        let (mut audit, into) = (cluster.audit(), ledgers.clone());
        let mut reader = JoinSet::new();
        reader.spawn(async move {
            loop {
                let events = audit.read();
                if !events.is_empty() {
                    let mut ledgers = lock(&into);
                    for event in events {
                        let namespace = event.object_ref.namespace.as_deref().unwrap_or_default();
                        if let Some(ledger) = ledgers.get_mut(namespace) {
                            ledger.take_in(&event);
                        }
                    }
                    sender.send_replace(());
                }
                sleep(LOOK_AGAIN).await;
            }
        });
        Ok(Self { cluster, ledgers, grown, quiet: Arc::default(), _reader: reader })
    }

    /// Creates a namespace, whose requests are kept from now on.
    pub(crate) async fn namespace(&self) -> String {
        let namespace = self.cluster.namespace().await;
        lock(&self.ledgers).insert(namespace.clone(), Ledger::default());
        namespace
    }

    /// What is known by now.
    pub(crate) fn look<T>(&self, namespace: &str, look: impl FnOnce(&Ledger) -> T) -> T {
        look(lock(&self.ledgers).entry(namespace.to_owned()).or_default())
    }

    /// Waits until the log says something.
    pub(crate) async fn wait<T>(
        &self,
        namespace: &str,
        bound: Duration,
        what: &str,
        mut look: impl FnMut(&Ledger) -> Option<T>,
    ) -> Result<T, Failure> {
        let mut grown = self.grown.clone();
        let found = async {
            loop {
                grown.borrow_and_update();
                if let Some(found) = self.look(namespace, &mut look) {
                    return Ok(found);
                }
                grown.changed().await.map_err(|_| "the audit log can no longer be read")?;
            }
        };
        timeout(bound, found).await.map_err(|_| format!("{what}: not within {bound:?}"))?
    }

    /// Waits for its turn.
    pub(crate) async fn quiet(&self, at_most: Duration) -> Quiet {
        let turn = self.quiet.clone().lock_owned().await;
        let (sender, dropped) = oneshot::channel::<()>();
        tokio::spawn(async move {
            let _ = timeout(at_most, dropped).await;
            drop(turn);
        });
        Quiet(sender)
    }
}

/// By the clock of this machine, which is the API server's too.
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
