//! What follows an upgrade (exec, attach, port forwarding): bytes, both ways, until one side ends it.
//!
//! Nobody looks at these bytes. If it took leadership to open the tunnel, it ends with the term in which it was opened.

use futures_util::StreamExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use kube_leader_gate::{Leader, leadership::Term};
use tokio::io::copy_bidirectional;

pub struct Tunnel {
    caller: OnUpgrade,
    server: OnUpgrade,
    /// Whose term it must not outlive; none where it does not take leadership.
    bound: Option<(Leader, Option<Term>)>,
}

impl Tunnel {
    /// Opened at this moment, under `leader` if it took leadership.
    pub fn new(caller: OnUpgrade, server: OnUpgrade, leader: Option<Leader>) -> Self {
        let bound = leader.map(|leader| {
            let term = leader.term();
            (leader, term)
        });
        Self { caller, server, bound }
    }

    /// Carries until one side ends it, or the term ends. Dropping it closes both sides.
    pub async fn run(self) {
        let carry = async {
            let (caller, server) = tokio::try_join!(self.caller, self.server)?;
            // An error of either side closes both, as it would without a proxy.
            let _ = copy_bidirectional(&mut TokioIo::new(caller), &mut TokioIo::new(server)).await;
            Ok::<_, hyper::Error>(())
        };
        tokio::select! {
            carried = carry => if let Err(error) = carried {
                tracing::debug!("an upgrade failed: {}", crate::chain(&error));
            },
            () = over(self.bound) => tracing::warn!("a connection that only a leader may have is closed: the term is over"),
        }
    }
}

/// Waits until the term is over; for ever where none is asked for.
async fn over(bound: Option<(Leader, Option<Term>)>) {
    let Some((leader, term)) = bound else { return std::future::pending().await };
    if term.is_some() {
        let mut changes = leader.changes();
        while let Some(state) = changes.next().await {
            if state.term != term {
                return;
            }
        }
    }
}
