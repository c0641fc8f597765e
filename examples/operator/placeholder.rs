//! To be replaced by `Election::run_while_leading`.

use futures_util::StreamExt;
use kube_leader_gate::{CancellationToken, Election, election::ElectionEnded, leadership::Term};
use std::pin::pin;

pub async fn run_while_leading<F>(
    election: Election,
    shutdown: impl Future<Output = ()>,
    work: impl Fn(CancellationToken, Term) -> F,
) -> Result<(), ElectionEnded>
where
    F: Future<Output = ()>,
{
    let leader = election.leader();
    let terms = async {
        let mut shutdown = pin!(shutdown);
        loop {
            let term = tokio::select! {
                term = leader.elected() => term,
                () = &mut shutdown => return,
            };
            let over = CancellationToken::new();
            let mut changes = leader.changes();
            let mut work = pin!(work(over.clone(), term.clone()));
            loop {
                tokio::select! {
                    Some(state) = changes.next() => {
                        if state.term.as_ref() != Some(&term) {
                            over.cancel();
                        }
                    }
                    () = &mut work => break,
                    () = &mut shutdown => {
                        over.cancel();
                        work.await;
                        return;
                    }
                }
            }
        }
    };
    election.run(terms).await
}
