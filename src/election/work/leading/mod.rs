//! Leading only: work that runs while this process leads, once for each term.

mod backoff;
mod shift;

use self::{backoff::Backoff, shift::Shift};
use crate::{
    election::{
        built::Election,
        ended::{ErrElectionEnded, Finished},
        running::Running,
    },
    leadership::{Leadership, Moment, Tenure, Term},
    lease::Lock,
};
use std::{
    future::Future,
    pin::{Pin, pin},
    time::Duration,
};
use tokio::select;
use tokio_util::sync::CancellationToken;
use tracing::Span;

/// What ends the work of a term.
enum End {
    /// The term is over.
    Lost,
    /// The program wants to stop.
    Shutdown,
    /// The work itself.
    Early,
}

/// How long the work may take to end once its token is cancelled.
struct Grace {
    while_leading: Duration,
    after_a_loss: Duration,
}

impl<L: Lock> Election<L> {
    /// Runs `work` anew for each term in which this process leads, until `shutdown` completes. It then returns how the lease
    /// was left.
    ///
    /// `work` is called once for each term, when the gate is open, with a token that asks the work to end, and the term.
    /// Followers run nothing: kcp's and Linkerd's way. [`run`](Self::run) is the other one, with caches that are warm when
    /// a term begins.
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
    /// 1. **Never two at once** (rule S11): the work of a term begins after that of the term before has ended, or has been
    ///    dropped, and its drop is complete; and not before a write of that work which was not answered can take effect no more
    ///    (its end plus lease duration less renew deadline, rule S4). That holds for the future that `work` returns: tasks that it spawns are its
    ///    own affair; a [`JoinSet`](tokio::task::JoinSet) ends them with it.
    /// 2. **A loss** (theft, preemption, deletion, a deadline that has passed, noticed at the time or not) cancels the
    ///    token at once.
    ///    The work has the [grace](crate::election::ElectionBuilder::grace) to end, and no more than lease duration less
    ///    renew deadline, counted from the end of the term: work that wakes from a freeze later than that is not polled
    ///    again. Then it is dropped. Meanwhile this process does not contend, so that nothing that the old work sends is
    ///    let in by a new term. After an expiry the work has thus ended before another replica's begins; a theft by hand
    ///    gives no such time, nor does a [preemption](crate::election::Priority), which waits for the writes alone. Work that has not been polled when its term is lost never is.
    /// 3. **Work that ends by itself, or panics**, also in `work` itself and in a drop, gives leadership up in the order
    ///    of rule S4, for a follower to take over, and this process stays away for a while: 1 s at most at first, doubled
    ///    each time up to a minute, half of it by chance; from the start again after work that ran for two minutes. Panics
    ///    are logged, and end nothing else. Writes that were left behind may finish within the
    ///    [drain timeout](crate::election::ElectionBuilder::drain_timeout).
    /// 4. **On shutdown** the token is cancelled, and the work has the grace to end while the lease is renewed and its
    ///    writes pass. Then the order of rule S4 follows: the gate closes, admitted writes finish within the drain timeout
    ///    (those of work that has not ended too, which is dropped after that), and the lease is released. A follower just
    ///    stops. No work begins any more.
    ///
    /// Dropping the future drops the work and closes the gate at once; the lease then runs out by itself. The work runs
    /// in the future itself: it need be neither `Send` nor `'static`, and work that blocks its thread does not see the
    /// cancellation.
    ///
    /// # Errors
    /// [`ErrElectionEnded`] when the election ended without being told to (rule S10): the work has had its time and is dropped, and the
    /// gate is closed.
    ///
    /// # Panics
    /// Outside of a tokio runtime, and when `shutdown` does.
    pub async fn run_while_leading<F, W>(
        self,
        shutdown: impl Future<Output = ()>,
        mut work: F,
    ) -> Result<Finished<()>, ErrElectionEnded>
    where
        F: FnMut(CancellationToken, Term) -> W,
        W: Future<Output = ()>,
    {
        let margin = self.profile.timing.tolerated_skew();
        let grace = Grace { while_leading: self.grace, after_a_loss: self.grace.min(margin) };
        let running = self.start();
        let leadership = running.leadership().clone();
        let mut terms = leadership.terms();
        let mut backoff = Backoff::default();
        let mut shutdown = pin!(shutdown);
        loop {
            let tenure = select! {
                biased;
                ended = running.died() => return Err(ended),
                () = &mut shutdown => return Ok(Finished::new((), running.stop().await)),
                Some(tenure) = terms.next() => tenure,
            };
            select! {
                biased;
                ended = running.died() => return Err(ended),
                () = &mut shutdown => return Ok(Finished::new((), running.stop().await)),
                () = unwanted(&tenure) => continue,
                () = settled(&leadership, margin) => {}
            }
            let begun = leadership.now();
            let mut shift = Shift::new(span(&running, &tenure), |token| work(token, tenure.term().clone()));
            let pause = match end(&tenure, shutdown.as_mut(), &mut shift).await {
                // It has done nothing yet, and must not begin now.
                End::Lost if !shift.has_begun() => continue,
                End::Shutdown if !shift.has_begun() => {
                    drop(shift);
                    return Ok(Finished::new((), running.stop().await));
                }
                End::Lost => {
                    wind_down(&running, &tenure, &mut shift, &grace).await;
                    if !leadership.is_leader() {
                        drop(shift);
                        running.contend();
                        continue;
                    }
                    // The gate is closed: admitted writes of a preempted term still finish, or another term was gained before
                    // the loss of this one was noticed.
                    Duration::ZERO
                }
                End::Shutdown => {
                    wind_down(&running, &tenure, &mut shift, &grace).await;
                    let lease = running.stop_with(until_over(&tenure, shift)).await;
                    return Ok(Finished::new((), lease));
                }
                End::Early => {
                    let pause = backoff.after(leadership.now().saturating_since(begun));
                    let ended = || tracing::warn!(?pause, "the work has ended by itself: standing down");
                    shift.span().in_scope(ended);
                    pause
                }
            };
            // Not broken off by a shutdown: it takes no longer than a stop, which has nothing left to do after it.
            running.stand_down(until_over(&tenure, shift)).await;
            select! {
                biased;
                () = &mut shutdown => return Ok(Finished::new((), running.stop().await)),
                () = running.stay_away(pause) => {}
            }
        }
    }
}

/// Waits until no write of earlier work that was not answered can take effect any more (rule S4). Another one may end so
/// meanwhile.
async fn settled(leadership: &Leadership, margin: Duration) {
    loop {
        let last = leadership.unanswered().map_or(Moment::from_nanos(0), |last| last.saturating_add(margin));
        if leadership.now() >= last {
            return;
        }
        leadership.sleep_until(last).await;
    }
}

/// Waits until no work is to begin in this term any more.
async fn unwanted(tenure: &Tenure) {
    select! {
        () = tenure.over() => {}
        () = tenure.closing() => {}
    }
}

fn span(running: &Running, tenure: &Tenure) -> Span {
    let candidate = running.candidate();
    tracing::info_span!("work", lease = %candidate.lease(), identity = %candidate.identity(), term = %tenure.term())
}

/// Runs the work until something ends it. The deadline is looked at before each poll.
async fn end<W: Future<Output = ()>>(
    tenure: &Tenure,
    shutdown: Pin<&mut impl Future<Output = ()>>,
    shift: &mut Shift<W>,
) -> End {
    select! {
        biased;
        () = tenure.over() => End::Lost,
        // Preempted: what was admitted finishes, and nothing new is let in.
        () = tenure.closing() => End::Lost,
        () = shutdown => End::Shutdown,
        // What ends because its term does has not ended by itself.
        () = shift => if tenure.is_open() { End::Early } else { End::Lost },
    }
}

/// Asks the work to end, and gives it its time. Nothing is acquired meanwhile.
async fn wind_down<W: Future<Output = ()>>(
    running: &Running,
    tenure: &Tenure,
    shift: &mut Shift<W>,
    grace: &Grace,
) {
    running.hold();
    shift.cancel();
    let leadership = running.leadership();
    let latest = leadership.now().saturating_add(grace.while_leading);
    let late = async {
        select! {
            biased;
            () = tenure.over() => {}
            () = leadership.sleep_until(latest) => return,
        }
        // Also what is being acquired at this moment lets nothing in.
        running.suspend();
        leadership.sleep_until(latest.min(tenure.ended_at().saturating_add(grace.after_a_loss))).await;
    };
    select! {
        biased;
        () = late => {
            shift.span().in_scope(|| tracing::warn!("the work has not ended in its time: it is dropped"));
        }
        () = &mut *shift => {}
    }
}

/// The rest of the work, for as long as its term goes on.
async fn until_over<W: Future<Output = ()>>(tenure: &Tenure, shift: Shift<W>) {
    select! {
        biased;
        () = tenure.over() => {}
        () = shift => {}
    }
}
