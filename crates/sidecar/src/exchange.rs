//! What a connection is doing: one request at a time.

use crate::tunnel::Tunnel;
use kube_leader_gate::request::{RequestInfo, Verb};
use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The state that all parts that serve one connection share.
#[derive(Clone, Default)]
pub(crate) struct Exchange(Arc<Mutex<Present>>);

/// The present request.
#[derive(Default)]
enum Present {
    /// There is none yet.
    #[default]
    None,
    /// It ends by itself, so a stop waits for its answer. It ends with its caller too.
    Finite,
    /// It ends by itself, and its answer is due although the caller has ended its side.
    Due,
    /// It ends only when one side ends it.
    Endless,
    /// It was answered with a tunnel, which sees the caller's end itself.
    Tunnel(Tunnel),
}

// === impl Exchange ===

impl Exchange {
    /// A request has come in. Its content is not known yet.
    pub(crate) fn arrive(&self, is_whole: bool) {
        *self.present() = if is_whole { Present::Due } else { Present::Finite };
    }

    /// Records what the request asks for.
    pub(crate) fn begin(&self, asked: &RequestInfo<'_>) {
        if is_endless(asked) {
            *self.present() = Present::Endless;
        } else if !asked.is_read() || asked.verb() == Verb::Connect {
            // An application behind `proxy` may let a read wait for hours.
            *self.present() = Present::Finite;
        }
    }

    /// The answer opens a tunnel.
    pub(crate) fn open(&self, tunnel: Tunnel) {
        *self.present() = Present::Tunnel(tunnel);
    }

    /// The answer is the sidecar's own.
    pub(crate) fn refuse(&self) {
        *self.present() = Present::Due;
    }

    pub(crate) fn tunnel(&self) -> Option<Tunnel> {
        match mem::take(&mut *self.present()) {
            Present::Tunnel(tunnel) => Some(tunnel),
            _ => None,
        }
    }

    pub(crate) fn ends_by_itself(&self) -> bool {
        matches!(*self.present(), Present::Finite | Present::Due)
    }

    pub(crate) fn ends_with_its_caller(&self) -> bool {
        matches!(*self.present(), Present::Finite | Present::Endless)
    }

    fn present(&self) -> MutexGuard<'_, Present> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch, and a log that is followed. A request for an upgrade has an end: its answer.
fn is_endless(asked: &RequestInfo<'_>) -> bool {
    let follows = |pair: &str| pair.starts_with("follow") && !["follow=0", "follow=false"].contains(&pair);
    asked.verb() == Verb::Watch
        || asked.subresource() == "log" && asked.query().unwrap_or_default().split('&').any(follows)
}
