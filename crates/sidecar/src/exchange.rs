//! What a connection is doing: one request at a time.

use crate::{
    tunnel::Tunnel,
    upload::Upload,
    upstream::{Streamed, Upstream},
};
use http::{Request, Response};
use kube_leader_gate::request::{RequestInfo, Verb};
use std::{
    future::poll_fn,
    mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
};
use tower::{BoxError, Service};

/// The state that all parts that serve one connection share. All of them run in the connection's task.
pub(crate) struct Exchange {
    present: Mutex<Present>,
    /// The connection's own: a clone for each request would cost more than the gate.
    upstream: Mutex<Upstream>,
    is_cut_off: AtomicBool,
}

/// The present request.
#[derive(Default)]
enum Present {
    /// There is none yet.
    #[default]
    None,
    /// It ends by itself, so a stop waits for its answer.
    Finite,
    /// It ends only when one side ends it.
    Endless,
    /// It was answered with a tunnel, which sees the caller's end itself.
    Tunnel(Tunnel),
}

// === impl Exchange ===

impl Exchange {
    pub(crate) fn new(upstream: Upstream) -> Self {
        Self { present: Mutex::default(), upstream: Mutex::new(upstream), is_cut_off: AtomicBool::new(false) }
    }

    /// Sends the request on. Returns None if the sidecar stops waiting for the answer.
    pub(crate) async fn send(
        &self,
        request: Request<Upload>,
    ) -> Option<Result<Response<Streamed>, BoxError>> {
        if let Err(error) = poll_fn(|cx| lock(&self.upstream).poll_ready(cx)).await {
            return Some(Err(error));
        }
        let mut answer = lock(&self.upstream).call(request);
        poll_fn(|cx| {
            if self.is_cut_off.load(Ordering::Relaxed) {
                return Poll::Ready(None);
            }
            answer.as_mut().poll(cx).map(Some)
        })
        .await
    }

    /// The next poll of the connection gives up its request.
    pub(crate) fn cut_off(&self) {
        self.is_cut_off.store(true, Ordering::Relaxed);
    }

    /// A request has come in. Its content is not known yet.
    pub(crate) fn arrive(&self) {
        *self.present() = Present::Finite;
    }

    /// Records what the request asks for.
    pub(crate) fn begin(&self, asked: &RequestInfo<'_>) {
        if is_endless(asked) {
            *self.present() = Present::Endless;
        }
    }

    /// The answer opens a tunnel.
    pub(crate) fn open(&self, tunnel: Tunnel) {
        *self.present() = Present::Tunnel(tunnel);
    }

    /// The answer is the sidecar's own.
    pub(crate) fn refuse(&self) {
        *self.present() = Present::Finite;
    }

    pub(crate) fn tunnel(&self) -> Option<Tunnel> {
        match mem::take(&mut *self.present()) {
            Present::Tunnel(tunnel) => Some(tunnel),
            _ => None,
        }
    }

    pub(crate) fn ends_by_itself(&self) -> bool {
        matches!(*self.present(), Present::Finite)
    }

    fn present(&self) -> MutexGuard<'_, Present> {
        lock(&self.present)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A watch, and a log that is followed. A request for an upgrade has an end: its answer.
fn is_endless(asked: &RequestInfo<'_>) -> bool {
    let follows = |pair: &str| pair.starts_with("follow") && !["follow=0", "follow=false"].contains(&pair);
    asked.verb() == Verb::Watch
        || asked.subresource() == "log" && asked.query().unwrap_or_default().split('&').any(follows)
}
