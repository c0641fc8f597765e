//! To be replaced by `kube_leader_gate::runtime` and `Election::run_while_leading`.

use crate::operator::Failure;
use futures_util::StreamExt;
use kube_leader_gate::{CancellationToken, Election, leadership::Term};

pub async fn run_while_leading<F>(
    election: Election,
    shutdown: CancellationToken,
    work: impl Fn(CancellationToken, Term) -> F,
) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>>,
{
    let leader = election.leader();
    let terms = async {
        loop {
            let term = tokio::select! {
                term = leader.elected() => term,
                () = shutdown.cancelled() => return Ok::<_, Failure>(()),
            };
            let over = CancellationToken::new();
            let lost = async {
                let mut changes = leader.changes();
                while let Some(state) = changes.next().await {
                    if state.term.as_ref() != Some(&term) {
                        break;
                    }
                }
            };
            let ends = async {
                tokio::select! {
                    () = lost => {}
                    () = shutdown.cancelled() => {}
                }
                over.cancel();
            };
            tokio::join!(work(over.clone(), term.clone()), ends).0?;
        }
    };
    election.run(terms).await?
}
