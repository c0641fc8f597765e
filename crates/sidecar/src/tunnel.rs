//! What follows an upgrade (exec, attach, port forwarding): bytes in both directions, until one side ends the
//! connection.
//!
//! The sidecar does not interpret these bytes. If opening the tunnel needed leadership, the tunnel ends with the term
//! in which it was opened.

use crate::failure::chain;
use futures_util::StreamExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use kube_leader_gate::{Candidate, leadership::Term};
use std::{
    future::{pending, poll_fn},
    io,
    pin::pin,
    task::Poll,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy, split},
    time::timeout,
};

/// How long a side may still send after the other side has ended.
const LAST_WORDS: Duration = Duration::from_secs(5);

pub(crate) struct Tunnel {
    caller: OnUpgrade,
    server: OnUpgrade,
    /// The term that the tunnel must not outlive. `None` if it does not need leadership.
    bound: Option<Bound>,
}

type Bound = (Option<Term>, Candidate);

impl Tunnel {
    /// Opens a tunnel now, under `leader` if it needs leadership.
    pub(crate) fn new(caller: OnUpgrade, server: OnUpgrade, candidate: Option<Candidate>) -> Self {
        Self { caller, server, bound: candidate.map(|candidate| (candidate.term(), candidate)) }
    }

    /// Carries bytes until one side ends the tunnel, or the term ends. Dropping it closes both sides.
    pub(crate) async fn run(self) {
        let Self { caller, server, bound } = self;
        let mut carry = pin!(async {
            let (caller, server) = tokio::try_join!(caller, server)?;
            // An error of either side closes both, as it would without a proxy.
            let _ = both_ways(TokioIo::new(caller), TokioIo::new(server)).await;
            Ok::<_, hyper::Error>(())
        });
        // Check before each step, as for any write: a process that wakes after the deadline may not know yet that its
        // term is over (rule S2).
        let carry = poll_fn(|cx| {
            if is_over(bound.as_ref()) { Poll::Ready(None) } else { carry.as_mut().poll(cx).map(Some) }
        });
        let carried = tokio::select! {
            carried = carry => carried,
            () = told(bound.as_ref()) => None,
        };
        match carried {
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::debug!("an upgrade failed: {}", chain(&error)),
            None => tracing::warn!("closed a connection that needs leadership: the term is over"),
        }
    }
}

/// Carries bytes until one side ends. Tells the other side, which then has a moment to send its last bytes.
async fn both_ways(
    caller: impl AsyncRead + AsyncWrite,
    server: impl AsyncRead + AsyncWrite,
) -> io::Result<()> {
    let ((from_caller, to_caller), (from_server, to_server)) = (split(caller), split(server));
    let (mut up, mut down) = (pin!(pass(from_caller, to_server)), pin!(pass(from_server, to_caller)));
    tokio::select! {
        ended = up.as_mut() => { ended?; timeout(LAST_WORDS, down).await? }
        ended = down.as_mut() => { ended?; timeout(LAST_WORDS, up).await? }
    }
}

async fn pass(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
    copy(&mut from, &mut to).await?;
    to.shutdown().await
}

/// Whether the term is over, even if no task has noticed.
fn is_over(bound: Option<&Bound>) -> bool {
    bound.is_some_and(|(term, candidate)| term.is_none() || candidate.term() != *term)
}

/// Waits until the election has noticed that the term is over. Waits for ever if the tunnel does not need leadership.
async fn told(bound: Option<&Bound>) {
    let Some((term, candidate)) = bound else { return pending().await };
    let mut changes = candidate.changes();
    while let Some(state) = changes.next().await {
        if state.term != *term {
            return;
        }
    }
}
