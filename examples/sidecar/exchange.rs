//! What a connection is doing: one request at a time.

use crate::tunnel::Tunnel;
use kube_leader_gate::request::{RequestInfo, Verb};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The state that all parts that serve one connection share.
#[derive(Clone, Default)]
pub struct Exchange(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    present: Present,
    tunnel: Option<Tunnel>,
}

/// The present request.
#[derive(Clone, Copy, Default, PartialEq)]
enum Present {
    /// There is none yet, or a tunnel, which sees the caller's end itself.
    #[default]
    None,
    /// It ends by itself, so a stop waits for its answer. It ends with its caller too.
    Finite,
    /// It ends by itself, and its answer is due although the caller has ended its side.
    Due,
    /// It ends only when one side ends it.
    Endless,
}

// === impl Exchange ===

impl Exchange {
    /// A request has come in. Its content is not known yet.
    pub fn arrive(&self, is_whole: bool) {
        self.state().present = if is_whole { Present::Due } else { Present::Finite };
    }

    /// Records what the request asks for.
    pub fn begin(&self, asked: &RequestInfo<'_>) {
        let mut state = self.state();
        if is_endless(asked) {
            state.present = Present::Endless;
        } else if !asked.is_read() || asked.verb() == Verb::Connect {
            // An application behind `proxy` may let a read wait for hours.
            state.present = Present::Finite;
        }
    }

    /// The answer opens a tunnel.
    pub fn open(&self, tunnel: Tunnel) {
        *self.state() = State { present: Present::None, tunnel: Some(tunnel) };
    }

    /// The answer is the sidecar's own.
    pub fn refuse(&self) {
        self.state().present = Present::Due;
    }

    pub fn tunnel(&self) -> Option<Tunnel> {
        self.state().tunnel.take()
    }

    pub fn ends_by_itself(&self) -> bool {
        matches!(self.state().present, Present::Finite | Present::Due)
    }

    pub fn ends_with_its_caller(&self) -> bool {
        matches!(self.state().present, Present::Finite | Present::Endless)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch, an upgrade, and a log that is followed.
fn is_endless(asked: &RequestInfo<'_>) -> bool {
    let follows = |pair: &str| pair.starts_with("follow") && !["follow=0", "follow=false"].contains(&pair);
    asked.verb() == Verb::Watch
        || asked.is_upgrade() && !asked.is_read()
        || asked.subresource() == "log" && asked.query().unwrap_or_default().split('&').any(follows)
}
