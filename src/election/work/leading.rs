//! Leading only: work runs while this process leads, once for each term.

use super::leader_task::LeaderTask;
use crate::{
    election::{
        built::Election,
        ended::{ErrElectionEnded, Finished},
        running::Running,
    },
    leadership::{GrantedTerm, GrantedTerms, Term},
};
use std::{
    future::{Future, pending},
    pin::{Pin, pin},
    time::Duration,
};
use tokio::select;
use tokio_util::sync::CancellationToken;
use tracing::Span;

/// Why the work of a term ends.
enum End {
    /// The term is over.
    Lost,
    /// The program wants to stop.
    Shutdown,
    /// The work ended by itself.
    Early,
}

impl Election {
    /// Runs `work` once for each term in which this process leads, until `shutdown` completes. Then returns how the
    /// election left the lease.
    ///
    /// When the gate has opened for a term, the election calls `work` with a token and the term. The token asks the
    /// work to end. A follower runs nothing. With [`run`](Self::run) the workload runs on every replica instead, so its
    /// caches are warm when a term begins.
    ///
    /// ```no_run
    /// use kube_leader_gate::{CancellationToken, Election};
    ///
    /// # async fn reconcile(_: &kube_client::Client) {}
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = kube_client::Config::infer().await?;
    /// let election = Election::builder("my-namespace", "my-controller").build(&config)?;
    /// let client = election.client(&config)?;
    /// let shutdown = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
    /// election
    ///     .run_while_leading(shutdown, |ends: CancellationToken, term| {
    ///         let client = client.clone();
    ///         async move {
    ///             println!("leads in term {term}");
    ///             while !ends.is_cancelled() {
    ///                 reconcile(&client).await;
    ///             }
    ///         }
    ///     })
    ///     .await?
    ///     .into_output();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// 1. **Never two at once** ([rule S11](crate::guide::guarantees#s11-terms-of-one-process-never-overlap)): the work
    ///    of a term begins only after the earlier work has ended or was dropped completely. If a write of the earlier
    ///    work ended without an answer, the new work begins only once that write can no longer take effect
    ///    ([rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order)). This covers the future that `work`
    ///    returns. It does not cover tasks that the work spawns. A [`JoinSet`](tokio::task::JoinSet) ends such tasks
    ///    with the work, and the handle of [`Candidate::only_in`](crate::Candidate::only_in) refuses their writes in a
    ///    later term.
    /// 2. **A loss** cancels the token at once. A loss is a theft, a deletion or a deadline that has passed, even if no
    ///    task has noticed it yet. The work has the [grace](crate::election::ElectionBuilder::grace) to end, but at
    ///    most the [safety margin](crate::LeaseTiming::safety_margin), counted from the end of the term. Then the
    ///    election drops the work, and never polls it again. This process does not contend before the work has ended,
    ///    even if the work blocks its thread. So no new term admits what the old work sends. If the lease expires, the
    ///    work has ended before the work of another replica begins, unless the work blocks its thread for too long. A
    ///    theft, for example by a person who overwrites the holder in the lease, leaves no such time. A
    ///    [preferred candidate](crate::election::Priority) waits until the work has ended.
    /// 3. **If the work ends by itself or panics**, this process gives up leadership in the order of rule S4, so that a
    ///    follower takes over. This includes a panic in the function `work` itself and in a drop of its future. The
    ///    election logs the panic, and nothing else ends. This process then stays away for a pause. The pause is at
    ///    most 1 s the first time. This maximum doubles each further time, up to a minute. Half of the pause is random.
    ///    After work that ran for two minutes, the pause starts at 1 s again. A
    ///    [preferred candidate](crate::election::Priority) asks no holder for the lease for longer: for a lease duration, and for
    ///    at most 15 s the first time, up to ten minutes.
    /// 4. **On shutdown** the token is cancelled, and the work has the grace to end. Meanwhile the lease is renewed
    ///    and the work's writes pass. Then the order of rule S4 follows. Work that has not ended continues until its
    ///    admitted writes have finished, and is then dropped.
    ///
    /// A kube-runtime `Controller` needs `graceful_shutdown_on(token.cancelled_owned())`. Its `shutdown_on_signal()`
    /// alone ends the controller on a signal, but not at a loss: then the election drops the controller after the
    /// grace. `shutdown_on_signal()` does not end the election either, so `shutdown` has to listen to the same signals,
    /// as [`shutdown_signal`](crate::shutdown_signal) does. Otherwise, after a signal, the election sees work that
    /// ended by itself (3), and the process continues and leads again.
    ///
    /// Dropping the future drops the work and closes the gate at once. The lease then expires by itself. The work
    /// runs inside the future, so it need not be `Send` or `'static`. Work that blocks its thread does not end in time.
    ///
    /// # Errors
    /// [`ErrElectionEnded`] if the election ended without an order to stop
    /// ([rule S10](crate::guide::guarantees#s10-a-dead-election-closes-the-gate)). Before that, the work has had its
    /// time to end, and the election has dropped it.
    ///
    /// # Panics
    /// Outside a tokio runtime, and if `shutdown` panics.
    pub async fn run_while_leading<F, W>(
        self,
        shutdown: impl Future<Output = ()>,
        mut work: F,
    ) -> Result<Finished<()>, ErrElectionEnded>
    where
        F: FnMut(CancellationToken, Term) -> W,
        W: Future<Output = ()>,
    {
        let (grace, retreat) = (self.grace, self.program.retreat.clone());
        let mut running = self.start();
        let leadership = running.leadership().clone();
        let mut terms = leadership.terms();
        let mut pause = Duration::ZERO;
        let mut shutdown = pin!(shutdown);
        let rest = loop {
            let term = select! {
                biased;
                ended = running.died() => return Err(ended),
                () = &mut shutdown => break None,
                term = next_term(&running, &mut terms, pause) => term,
            };
            let mut shift = LeaderTask::new(span(&running, &term), |token| work(token, term.term().clone()));
            pause = Duration::ZERO;
            match end(&term, shutdown.as_mut(), &mut shift).await {
                // The work has done nothing yet, and must not begin now.
                End::Lost if !shift.has_begun() => continue,
                End::Shutdown if !shift.has_begun() => break None,
                End::Lost => {
                    wind_down(&running, &term, &mut shift, grace).await;
                    if !leadership.is_leader() {
                        continue;
                    }
                    // This term gives way to another candidate. Its gate is closed, and its admitted writes still
                    // finish.
                }
                End::Shutdown => {
                    running.warn_if_the_stop_is_slow();
                    wind_down(&running, &term, &mut shift, grace).await;
                    break Some((term, shift));
                }
                End::Early => {
                    pause = retreat.pause(leadership.now());
                    retreat.fall_silent(leadership.now());
                    let ended = || {
                        tracing::warn!(
                            ?pause,
                            "the work ended by itself; giving up leadership for a while: if it ends on a signal, give \
                             run_while_leading the same signal"
                        );
                    };
                    shift.span().in_scope(ended);
                }
            }
            // A shutdown does not interrupt this. It takes no longer than a stop, and leaves nothing for a stop to
            // do.
            running.stand_down(until_over(&term, shift)).await;
        };
        let lease = match rest {
            None => running.stop().await,
            Some((term, shift)) => running.stop_with(until_over(&term, shift)).await,
        };
        Ok(Finished::new((), lease))
    }
}

/// Contends after `pause`, and waits for the next term in which work may begin.
async fn next_term(running: &Running, terms: &mut GrantedTerms, pause: Duration) -> GrantedTerm {
    // No work is left, so the next term may begin.
    running.stay_away(pause).await;
    loop {
        let Some(term) = terms.next().await else { return pending().await };
        // Forbid the next term first. Only then look whether this term still lasts, so that no other term can begin
        // unnoticed.
        running.gate.keep_to_this_term();
        select! {
            biased;
            () = unwanted(&term) => running.gate.contend(),
            () = settled(running) => return term,
        }
    }
}

/// Waits until no unanswered write of earlier work can take effect (rule S4). During the wait, another write may end
/// without an answer, so this looks again after each wait.
async fn settled(running: &Running) {
    let (leadership, margin) = (running.leadership(), running.candidate().timing().safety_margin());
    while leadership.now() < leadership.settles_at(margin) {
        leadership.sleep_until(leadership.settles_at(margin)).await;
    }
}

/// Waits until no work may begin or go on in this term: it is over, or the gate admits no new writes.
async fn unwanted(term: &GrantedTerm) {
    select! {
        () = term.over() => {}
        () = term.closing() => {}
    }
}

fn span(running: &Running, term: &GrantedTerm) -> Span {
    let candidate = running.candidate();
    tracing::info_span!("work", lease = %candidate.lease(), identity = %candidate.identity(), term = %term.term())
}

/// Runs the work until something ends it. Checks the deadline before each poll.
async fn end<W: Future<Output = ()>>(
    term: &GrantedTerm,
    shutdown: Pin<&mut impl Future<Output = ()>>,
    shift: &mut LeaderTask<W>,
) -> End {
    select! {
        biased;
        () = unwanted(term) => End::Lost,
        () = shutdown => End::Shutdown,
        // If the work ends because its term does, it did not end by itself.
        () = shift => if term.is_open() { End::Early } else { End::Lost },
    }
}

/// Asks the work to end, and runs it until it has ended or its time is over.
async fn wind_down<W: Future<Output = ()>>(
    running: &Running,
    term: &GrantedTerm,
    shift: &mut LeaderTask<W>,
    grace: Duration,
) {
    shift.cancel();
    let leadership = running.leadership();
    let latest = leadership.now().saturating_add(grace);
    let late = async {
        select! {
            biased;
            () = term.over() => {}
            () = leadership.sleep_until(latest) => return,
        }
        let after_a_loss = grace.min(running.candidate().timing().safety_margin());
        leadership.sleep_until(latest.min(term.ended_at().saturating_add(after_a_loss))).await;
    };
    select! {
        biased;
        () = late => {
            let dropped = || {
                tracing::warn!(
                    "the work did not end in time; it is dropped: let it end within the grace after its token is cancelled, or set \
                     a longer grace"
                );
            };
            shift.span().in_scope(dropped);
        }
        () = &mut *shift => {}
    }
}

/// Runs the rest of the work while its term continues.
async fn until_over<W: Future<Output = ()>>(term: &GrantedTerm, shift: LeaderTask<W>) {
    select! {
        biased;
        () = term.over() => {}
        () = shift => {}
    }
}
