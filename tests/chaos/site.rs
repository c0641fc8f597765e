//! A server of its own, and its audit log as it grows.

use crate::{
    apiserver::{Assets, Audit, Cluster},
    seen::Seen,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

#[derive(Debug)]
pub struct Site {
    pub cluster: Cluster,
    log: Mutex<Log>,
}

#[derive(Debug)]
struct Log {
    audit: Audit,
    /// By namespace.
    seen: HashMap<String, Arc<Mutex<Seen>>>,
}

impl Site {
    pub async fn open(assets: &'static Assets) -> Self {
        let cluster = Cluster::start(assets).await;
        let log = Mutex::new(Log { audit: cluster.audit(), seen: HashMap::new() });
        Self { cluster, log }
    }

    /// What the log will say about a namespace from now on. Call [`catch_up`](Self::catch_up) before you look.
    pub fn watch(&self, namespace: &str) -> Arc<Mutex<Seen>> {
        lock(&self.log).seen.entry(namespace.to_owned()).or_default().clone()
    }

    /// Reads on to the end of the log.
    pub fn catch_up(&self) {
        let mut log = lock(&self.log);
        for event in log.audit.read() {
            let namespace = event.object_ref.namespace.as_deref();
            if let Some(seen) = namespace.and_then(|it| log.seen.get(it)) {
                lock(seen).take_in(&event);
            }
        }
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
