//! To be replaced by `kube_leader_gate::runtime` and `Election::run_while_leading`.

use crate::operator::Failure;
use futures_util::{Stream, StreamExt};
use kube::runtime::controller::Action;
use kube_leader_gate::{CancellationToken, Election, GateError, Leader, leadership::Term};
use std::{error::Error, sync::Arc};

pub fn gains(leader: &Leader) -> impl Stream<Item = ()> + Send + use<> {
    let mut last = None;
    leader.changes().filter_map(move |state| {
        let gained = state.term.is_some() && state.term != last;
        last = state.term;
        async move { gained.then_some(()) }
    })
}

pub fn gated<K, C, F, E>(
    mut reconcile: impl FnMut(Arc<K>, Arc<C>) -> F,
) -> impl FnMut(Arc<K>, Arc<C>) -> std::pin::Pin<Box<dyn Future<Output = Result<Action, E>> + Send>>
where
    F: Future<Output = Result<Action, E>> + Send + 'static,
    E: Error + 'static,
{
    move |object, context| {
        let work = reconcile(object, context);
        Box::pin(async move {
            match work.await {
                Err(error) if matches!(GateError::find(&error), Some(GateError::NotLeader(_))) => {
                    Ok(Action::await_change())
                }
                outcome => outcome,
            }
        })
    }
}

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
