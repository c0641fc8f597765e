//! What a connection is doing: one request at a time.

use crate::tunnel::Tunnel;
use kube_leader_gate::request::{RequestInfo, Verb};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The state that all parts that serve one connection share.
#[derive(Clone, Default)]
pub struct Exchange(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The present request ends by itself, so a stop waits for its answer.
    ends_by_itself: bool,
    /// Its present request may be answered although the caller has ended its side.
    is_plain_read: bool,
    /// Its present request is a read without an end. What the caller sends meanwhile has no meaning.
    is_endless_read: bool,
    /// The answer may turn the connection into a tunnel. Until it has come, further bytes may belong to that tunnel.
    may_switch: bool,
    /// The present request is the last one.
    ending: Ending,
    tunnel: Option<Tunnel>,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Ending {
    #[default]
    No,
    Due,
    Told,
}

// === impl Exchange ===

impl Exchange {
    /// A request has come in. Its content is not known yet.
    pub fn arrive(&self, is_whole: bool) {
        let mut state = self.state();
        state.ends_by_itself = true;
        state.is_plain_read = is_whole;
        state.is_endless_read = false;
        state.may_switch = false;
    }

    /// Records what the request asks for.
    pub fn begin(&self, asked: &RequestInfo<'_>) {
        let mut state = self.state();
        state.ends_by_itself = !is_endless(asked);
        state.is_plain_read &= state.ends_by_itself && asked.is_read();
        state.is_endless_read = !state.ends_by_itself && asked.is_read();
        state.may_switch = asked.is_upgrade();
    }

    /// The head of the answer has come. It opens a tunnel, or not.
    pub fn settle(&self, tunnel: Option<Tunnel>) {
        let mut state = self.state();
        state.may_switch = false;
        if tunnel.is_some() {
            // The tunnel sees all bytes of the caller, and its end. Whatever the request looked like, it is no read now.
            state.ends_by_itself = false;
            state.is_plain_read = false;
            state.is_endless_read = false;
        }
        state.tunnel = tunnel;
    }

    pub fn tunnel(&self) -> Option<Tunnel> {
        self.state().tunnel.take()
    }

    pub fn ends_by_itself(&self) -> bool {
        self.state().ends_by_itself
    }

    pub fn answers_a_read(&self) -> bool {
        self.state().is_plain_read
    }

    pub fn answers_an_endless_read(&self) -> bool {
        let state = self.state();
        state.is_endless_read && !state.may_switch
    }

    /// Ends the connection with the present request. Returns whether this is the first call.
    pub fn end_with_this(&self) -> bool {
        let mut state = self.state();
        let is_news = state.ending == Ending::No;
        if is_news {
            state.ending = Ending::Due;
        }
        is_news
    }

    /// Returns true once when the connection is to end.
    pub fn take_end(&self) -> bool {
        let mut state = self.state();
        let is_due = state.ending == Ending::Due;
        if is_due {
            state.ending = Ending::Told;
        }
        is_due
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the API server calls long-running: it ends only when one side ends it.
fn is_endless(asked: &RequestInfo<'_>) -> bool {
    matches!(asked.verb(), Verb::Watch | Verb::Connect | Verb::Proxy) || asked.subresource() == "log"
}
