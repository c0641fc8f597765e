//! The handle to ask about an election.

use super::{
    ended::{ErrElectionEnded, LeaseEnd},
    hooks::Hooks,
    liveness::Liveness,
};
use crate::{
    gate::{ErrNotLeader, ResponseFuture, Settings},
    leadership::{Changes, GrantedTerms, Leadership, LeadershipState, Term, WritePermit},
    lease::{Identity, LeaseName, LeaseTiming, marks::Marks},
};
use futures_util::{Stream, StreamExt, stream};
#[cfg(feature = "metrics")]
use std::sync::atomic::Ordering;
use std::{error::Error, future::Future, pin::Pin, sync::Arc};

/// Shows the election as this process's own candidate sees it. Clones are cheap and may outlive the election.
///
/// ```no_run
/// # async fn example(candidate: kube_leader_gate::Candidate) -> Result<(), Box<dyn std::error::Error>> {
/// candidate.check(std::time::Duration::from_secs(20))?; // a liveness probe
/// let term = candidate.elected().await;
/// println!("{} leads in term {term}", candidate.identity());
/// # Ok(())
/// # }
/// ```
///
/// Each answer is true at this instant and respects the deadline: a process that was frozen past its deadline does
/// not lead when it wakes.
#[derive(Clone, Debug)]
pub struct Candidate {
    leadership: Leadership,
    pub(super) profile: Arc<Profile>,
}

/// What all handles of one candidate share: its constant properties, and its liveness.
#[derive(Debug)]
pub(super) struct Profile {
    pub(super) lease: LeaseName,
    pub(super) identity: Identity,
    /// The uid of the pod in which this process runs.
    pub(super) pod: Option<String>,
    pub(super) timing: LeaseTiming,
    /// What a Lease gets that this candidate creates.
    pub(super) marks: Marks,
    pub(super) liveness: Liveness,
    pub(super) hooks: Hooks,
}

/// Marks the election as ended when it is dropped, for any reason (rule S10). This counts as a failure, unless an
/// orderly end was recorded before.
#[derive(Debug)]
pub(super) struct Alive(pub(super) Arc<Profile>);

// === impl Candidate ===

impl Candidate {
    pub(super) fn new(leadership: Leadership, profile: Arc<Profile>) -> Self {
        Self { leadership, profile }
    }

    /// The leadership that this handle reads. Observers of an election and layers of your own use it.
    #[must_use]
    pub const fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    /// Whether this process leads.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.leadership.is_leader()
    }

    /// Whether the gate would admit a write now. A leader that stops lets its admitted writes finish, and admits no new
    /// ones.
    #[must_use]
    pub fn can_write(&self) -> bool {
        self.leadership.can_write()
    }

    /// The last known holder of the lease.
    #[must_use]
    pub fn holder(&self) -> Option<Arc<str>> {
        self.leadership.holder()
    }

    /// Why the election makes no progress, in words for a person: lease calls fail, the lease makes no sense, a
    /// [layer](crate::extension::LockLayer) of the lock has trouble, or the program does not drive the election. The
    /// text also says what to do. If the API server refuses the watch, this is no trouble: the election then polls the
    /// lease.
    #[must_use]
    pub fn trouble(&self) -> Option<Arc<str>> {
        self.leadership.trouble()
    }

    /// The term in which this process leads.
    #[must_use]
    pub fn term(&self) -> Option<Term> {
        self.leadership.term()
    }

    /// The term whose gate has not opened yet, although this process holds the lease: what
    /// [`open_when`](super::Election::open_when) names has not come yet.
    #[must_use]
    pub fn opening(&self) -> Option<Term> {
        self.leadership.state().opening
    }

    /// The name under which this candidate contends.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.profile.identity
    }

    /// The lease that this candidate contends for.
    #[must_use]
    pub fn lease(&self) -> &LeaseName {
        &self.profile.lease
    }

    /// The election's times.
    #[must_use]
    pub fn timing(&self) -> LeaseTiming {
        self.profile.timing
    }

    /// Runs `future` only while this process leads: the gate for a write that is no request to the Kubernetes API.
    /// `label` names the write in errors, logs and metrics.
    ///
    /// 1. If this process does not lead at this call, `future` is dropped, and the outcome is
    ///    [`ErrNotLeader`](crate::ErrNotLeader).
    /// 2. Leadership is checked again before each poll of `future`. When the term is lost, the gate wakes the caller
    ///    and drops `future`, and the outcome is [`ErrLeadershipLost`](crate::ErrLeadershipLost)
    ///    ([rule S2](crate::guide::guarantees#s2-a-lost-term-cuts-off-its-writes)).
    /// 3. Until the returned future ends, the write is under way, and a stop waits for it. If `future` returns `Ok`,
    ///    this counts as an answer. An `Err` does not count as one: `future` may have sent the write before the error.
    ///    The election then keeps the lease for a while
    ///    ([rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order)). If an error is a certain answer, for
    ///    example because the database has refused the statement, let `future` return this error inside `Ok`. The gate
    ///    cannot tell this from the error alone, because another write of the same `future` may have no answer.
    ///
    /// The error is an [`ErrGuarded`](crate::gate::ErrGuarded), which a reconciler of kube-runtime can return:
    ///
    /// ```
    /// use kube_leader_gate::{Candidate, gate::ErrGuarded};
    ///
    /// #[derive(Debug, thiserror::Error)]
    /// enum Failure {
    ///     #[error(transparent)]
    ///     Cloud(#[from] ErrGuarded),
    ///     #[error("the API server: {0}")]
    ///     Kube(#[from] kube_client::Error), // from a gated client
    /// }
    ///
    /// async fn reconcile(candidate: &Candidate) -> Result<(), Failure> {
    ///     let address = candidate.guard("reserve an address", reserve()).await?;
    ///     store(address).await?;
    ///     Ok(())
    /// }
    ///
    /// # async fn reserve() -> Result<String, std::io::Error> { Ok(String::new()) }
    /// # async fn store(_: String) -> Result<(), kube_client::Error> { Ok(()) }
    /// ```
    ///
    /// When a stop has closed the gate, a future under guard continues until the drain timeout, but a gated client
    /// refuses each further write. So in the example, the cloud may reserve an address, and then the gate refuses the
    /// write that stores this address. Make sure that the next leader finds the address again: ask the cloud which
    /// addresses exist before you reserve another one, or derive the name of the address from the object. It does not
    /// help to put the whole reconciliation under guard.
    ///
    /// If a call sends something before its future is polled, put it into an `async` block: the block runs only on the leader.
    ///
    /// This method cannot call back what `future` has sent, and tasks that `future` has spawned continue to run. A
    /// store that compares the [fencing token](Term::fencing_token) refuses writes that arrive late. Use the guard of
    /// the token's term:
    ///
    /// ```
    /// use kube_leader_gate::Candidate;
    /// use std::{error::Error, io};
    ///
    /// async fn debit(candidate: &Candidate) -> Result<(), Box<dyn Error + Send + Sync>> {
    ///     let term = candidate.term().ok_or("no leader")?;
    ///     let update = update(term.fencing_token().ok_or("no token")?);
    ///     candidate.only_in(&term).guard("debit the account", update).await?.map_err(Into::into)
    /// }
    ///
    /// /// Fails if the database has not answered. The inner error is its answer.
    /// async fn update(token: u64) -> Result<Result<(), String>, io::Error> {
    ///     # let _ = token;
    ///     Ok(Ok(()))
    /// }
    /// ```
    ///
    /// # Panics
    /// The returned future panics if it is polled after it has completed.
    pub fn guard<F, T, E>(&self, label: &'static str, future: F) -> ResponseFuture<Pin<Box<F>>, &'static str>
    where
        F: Future<Output = Result<T, E>>,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.gate().guard(label, future)
    }

    /// Admits one write that is no request to the Kubernetes API, if this process leads now. Use it if the write is
    /// no future, and [`guard`](Self::guard) otherwise. `label` names the write in errors, logs and metrics.
    ///
    /// [`WritePermit`] says what to do with it: ask it before each step that could send something, record the answer,
    /// and keep it until the write has ended.
    ///
    /// # Errors
    /// [`ErrNotLeader`] if this process does not lead.
    pub fn admit(&self, label: &'static str) -> Result<WritePermit, Box<ErrNotLeader>> {
        self.gate().admit_labelled(label)
    }

    /// A handle for the work of `term`. In every other term, [`guard`](Self::guard) and [`admit`](Self::admit) of this
    /// handle refuse each write, also a write of a task that the work has left behind. The gate of a client cannot know
    /// which work sends a request, so it admits writes in each term.
    #[must_use]
    pub fn only_in(&self, term: &Term) -> Self {
        Self { leadership: self.leadership.only_in(term), profile: self.profile.clone() }
    }

    /// Hands leadership to another candidate without ending the election, if this process leads or is
    /// [about to](Self::opening). Returns at once.
    ///
    /// The election releases the lease in the order of
    /// [rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order). It contends again after a retry period. The work of
    /// [`run_while_leading`](super::Election::run_while_leading) ends first, as after a loss.
    pub fn give_way(&self) {
        if let Some(term) = self.term().or_else(|| self.opening()) {
            self.give_way_in(&term);
        }
    }

    /// Does what [`give_way`](Self::give_way) does, but only in `term`, and even if the gate has not opened for this
    /// term yet. It is for a layer of the lock that [withholds](crate::lease::ErrLockKind::Withheld) the answer to the
    /// claim of this term.
    pub fn give_way_in(&self, term: &Term) {
        self.leadership.ask_for(term.clone());
    }

    /// Whether this candidate takes the lease if it is free.
    #[cfg(feature = "metrics")]
    pub(crate) fn contends(&self) -> bool {
        !self.profile.liveness.has_ended() && self.profile.liveness.contends.load(Ordering::Acquire)
    }

    fn gate(&self) -> Settings {
        Settings::new(self.leadership.clone(), self.profile.hooks.writes.clone())
    }

    /// Waits until this process may write, and returns the term. Cancel-safe.
    ///
    /// Once the election has [`ended`](Self::ended), this future never completes, since this process cannot write
    /// again. [`Election::run`](super::Election::run) drops its workload then. In a task of your own, wait for both:
    ///
    /// ```no_run
    /// # async fn example(candidate: kube_leader_gate::Candidate) {
    /// tokio::select! {
    ///     term = candidate.elected() => println!("leads in term {term}"),
    ///     _ = candidate.ended() => println!("will not lead any more"),
    /// }
    /// # }
    /// ```
    pub async fn elected(&self) -> Term {
        self.leadership.elected().await
    }

    /// Waits until the election has ended, and returns how it left the lease. Cancel-safe.
    ///
    /// # Errors
    /// [`ErrElectionEnded`] if the election was dropped, or ended without an order to stop
    /// ([rule S10](crate::guide::guarantees#s10-a-dead-election-closes-the-gate)). The lease then expires.
    pub async fn ended(&self) -> Result<LeaseEnd, ErrElectionEnded> {
        self.profile.liveness.ended().await
    }

    /// Yields the present state, then each change: gains, losses, new holders. A slow reader may skip states in
    /// between. A renewal is not a change. The stream ends when the election does. `next` is cancel-safe.
    pub fn changes(&self) -> impl Stream<Item = LeadershipState> + Send + Unpin + use<> {
        let next = |mut changes: Changes| async move { Some((changes.next().await?, changes)) };
        stream::unfold(self.leadership.changes(), next).fuse().boxed()
    }

    /// Yields one item for each gain of leadership: at once if this process may write already, then for each later
    /// term. A slow reader gets one item for several gains, and none for a term that has ended already. The gate is
    /// open when an item comes, so the reader can repeat writes that the gate refused before.
    ///
    /// Give the stream to `Controller::reconcile_all_on` of kube-runtime. The stream ends when the election does, and
    /// the controller continues without it. `next` is cancel-safe.
    ///
    /// ```no_run
    /// use futures_util::StreamExt;
    ///
    /// # async fn example(candidate: kube_leader_gate::Candidate) {
    /// let mut gains = candidate.gains();
    /// while gains.next().await.is_some() {
    ///     println!("everything that was left alone is due now");
    /// }
    /// # }
    /// ```
    pub fn gains(&self) -> impl Stream<Item = ()> + Send + Sync + Unpin + use<> {
        let next = |mut terms: GrantedTerms| async move { terms.next().await.map(|_| ((), terms)) };
        // Not `boxed()`, which loses the `Sync` that kube-runtime before 4.2 asks for.
        Box::pin(stream::unfold(self.leadership.terms(), next).fuse())
    }
}

// === impl Alive ===

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.liveness.end(Err(ErrElectionEnded(())));
    }
}
