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
    /// The present request is the last one.
    ending: Ending,
    tunnel: Option<Tunnel>,
}

/// The present request.
#[derive(Clone, Copy, Default, PartialEq)]
enum Present {
    /// It ends only when one side ends it: a command, a tunnel. Or there is none yet.
    #[default]
    Open,
    /// It ends by itself, so a stop waits for its answer.
    Finite,
    /// The same, and it may be answered although the caller has ended its side.
    PlainRead,
    /// A read without an end. What the caller sends meanwhile has no meaning.
    EndlessRead,
    /// The same, but its answer may open a tunnel, to which further bytes would belong.
    UpgradingRead,
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
        self.state().present = if is_whole { Present::PlainRead } else { Present::Finite };
    }

    /// Records what the request asks for.
    pub fn begin(&self, asked: &RequestInfo<'_>) {
        let mut state = self.state();
        state.present = match (is_endless(asked), asked.is_read()) {
            (false, true) => state.present,
            (false, false) => Present::Finite,
            (true, true) if asked.is_upgrade() => Present::UpgradingRead,
            (true, true) => Present::EndlessRead,
            (true, false) => Present::Open,
        };
    }

    /// The head of the answer has come. It opens a tunnel, or not.
    pub fn settle(&self, tunnel: Option<Tunnel>) {
        let mut state = self.state();
        if tunnel.is_some() {
            // The tunnel sees all bytes of the caller, and its end, whatever the request looked like.
            state.present = Present::Open;
        } else if state.present == Present::UpgradingRead {
            state.present = Present::EndlessRead;
        }
        state.tunnel = tunnel;
    }

    pub fn tunnel(&self) -> Option<Tunnel> {
        self.state().tunnel.take()
    }

    pub fn ends_by_itself(&self) -> bool {
        matches!(self.state().present, Present::Finite | Present::PlainRead)
    }

    pub fn answers_a_read(&self) -> bool {
        self.state().present == Present::PlainRead
    }

    pub fn answers_an_endless_read(&self) -> bool {
        self.state().present == Present::EndlessRead
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
