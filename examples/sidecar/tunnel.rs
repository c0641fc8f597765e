//! What follows an upgrade (exec, attach, port forwarding): bytes, both ways, until one side ends it.
//!
//! Nobody looks at these bytes. If it took leadership to open the tunnel, it ends with the term in which it was opened.

use futures_util::StreamExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use kube_leader_gate::{Candidate, leadership::Term};
use std::{
    future::{pending, poll_fn},
    pin::pin,
    task::Poll,
};
use tokio::io::copy_bidirectional;

pub struct Tunnel {
    caller: OnUpgrade,
    server: OnUpgrade,
    /// Whose term it must not outlive; none where it does not take leadership.
    bound: Option<Bound>,
}

type Bound = (Candidate, Option<Term>);

impl Tunnel {
    /// Opened at this moment, under `leader` if it took leadership.
    pub fn new(caller: OnUpgrade, server: OnUpgrade, candidate: Option<Candidate>) -> Self {
        let bound = candidate.map(|candidate| {
            let term = candidate.term();
            (candidate, term)
        });
        Self { caller, server, bound }
    }

    /// Carries until one side ends it, or the term ends. Dropping it closes both sides.
    pub async fn run(self) {
        let Self { caller, server, bound } = self;
        let mut carry = pin!(async {
            let (caller, server) = tokio::try_join!(caller, server)?;
            // An error of either side closes both, as it would without a proxy.
            let _ = copy_bidirectional(&mut TokioIo::new(caller), &mut TokioIo::new(server)).await;
            Ok::<_, hyper::Error>(())
        });
        // Before each step, as with any write: on waking after the deadline nobody has told of it yet (rule S2).
        let carry = poll_fn(|cx| {
            if is_over(bound.as_ref()) { Poll::Ready(None) } else { carry.as_mut().poll(cx).map(Some) }
        });
        let carried = tokio::select! {
            carried = carry => carried,
            () = told(bound.as_ref()) => None,
        };
        match carried {
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::debug!("an upgrade failed: {}", crate::chain(&error)),
            None => tracing::warn!("a connection that only a leader may have is closed: the term is over"),
        }
    }
}

/// Whether the term is over, noticed by anybody or not.
fn is_over(bound: Option<&Bound>) -> bool {
    bound.is_some_and(|(candidate, term)| term.is_none() || candidate.term() != *term)
}

/// Waits until somebody has noticed that the term is over; for ever where none is asked for.
async fn told(bound: Option<&Bound>) {
    let Some((candidate, term)) = bound else { return pending().await };
    let mut changes = candidate.changes();
    while let Some(state) = changes.next().await {
        if state.term != *term {
            return;
        }
    }
}
