//! What the elector tells people and observers: the log, trouble, the last known holder, and signs of life.

use super::{
    candidate::Profile,
    hooks::LeaseCall,
    lease_watch::WatchNews,
    machine::{Call, Machine, Outcome, View},
    preemption::holder_key,
};
use crate::{
    api::RateLimitedLog,
    leadership::{Grantor, Leadership, Loss, Moment},
    lease::{ErrLock, ErrLockKind, LeaseRecord},
};
use std::sync::{Arc, atomic::Ordering};

pub(super) struct Report {
    pub(super) profile: Arc<Profile>,
    /// The call under way, and when it was sent.
    call: (LeaseCall, Moment),
    calls: RateLimitedLog,
    stuck: RateLimitedLog,
    watch: RateLimitedLog,
    former: RateLimitedLog,
    oddity: RateLimitedLog,
    mutual_preemption: RateLimitedLog,
}

impl Report {
    pub(super) fn new(profile: Arc<Profile>) -> Self {
        Self {
            profile,
            call: (LeaseCall::Read, Moment::from_nanos(0)),
            calls: RateLimitedLog::new("lease calls fail"),
            stuck: RateLimitedLog::new("lease calls stay on a connection that hangs"),
            watch: RateLimitedLog::new("the lease cannot be watched; it is polled"),
            former: RateLimitedLog::new("no candidate may lead before a former holder's time is over"),
            oddity: RateLimitedLog::new("the lease makes no sense"),
            mutual_preemption: RateLimitedLog::new(
                "candidates preempt each other in turn; make their priorities agree",
            ),
        }
    }

    /// Tells what is known now.
    pub(super) fn tell(&mut self, machine: &Machine, view: &View, grantor: &Grantor) {
        let now = view.now;
        self.profile.liveness.contend(machine.contends(view));
        if !machine.is_mine() {
            self.profile.liveness.note_renewal(None);
        }
        let record = machine.record();
        if record.is_some() {
            self.profile.liveness.seen.store(true, Ordering::Release);
        }
        let holder = record.and_then(LeaseRecord::holder);
        if grantor.leadership().holder().as_deref() != holder {
            let news =
                if holder.is_some() { "the lease has changed hands" } else { "no candidate holds the lease" };
            tracing::info!(holder, "{news}");
            grantor.note_holder(holder);
        }
        match machine.oddity() {
            Some(oddity) => self.oddity.raise(oddity, &oddity, now),
            None => self.oddity.settle(now),
        }
        match machine.long_wait(now) {
            Some(details) => self.former.raise("former holder", &details, now),
            None => self.former.settle(now),
        }
        match machine.backs_off(now) {
            Some(true) => {
                let key = record.and_then(holder_key).unwrap_or_default();
                let details =
                    format_args!("this candidate waits longer each time; the holder's key is {key:?}");
                self.mutual_preemption.raise("preempted in turn", &details, now);
            }
            Some(false) => self.mutual_preemption.settle(now),
            None => {}
        }
        // A missing watch is no trouble.
        let all = [&self.stuck, &self.calls, &self.former, &self.oddity];
        grantor.note_trouble(all.into_iter().find_map(RateLimitedLog::text).cloned());
        if let Some(hook) = &self.profile.hooks.lease {
            hook.vacant(view.term.is_none() && machine.is_vacant(now), now);
        }
    }

    pub(super) fn watched(&mut self, news: &WatchNews, now: Moment) {
        match news {
            WatchNews::Up => self.watch.settle(now),
            WatchNews::Down(Some(error)) => self.watch.raise(error.kind().as_str(), error, now),
            WatchNews::Down(None) | WatchNews::Event(_) => {}
        }
    }

    pub(super) fn begins(&mut self, call: &Call, now: Moment) {
        self.call = (call.what, now);
        let live = call.seen.as_ref().filter(|_| call.preempts);
        if let Some(record) = live {
            let (holder, holder_key) = (record.holder(), holder_key(record));
            tracing::info!(holder, holder_key, "preempting a live holder of lower precedence");
        }
    }

    /// Tells what has come of the call under way. `stuck` says why the next one does not use a fresh connection.
    pub(super) fn answers(
        &mut self,
        answer: &Result<Option<LeaseRecord>, ErrLock>,
        stuck: Option<&'static str>,
        now: Moment,
    ) {
        let (what, sent) = self.call;
        if let Some(why) = stuck {
            self.stuck.raise("no fresh client", &why, now);
        }
        if let Some(hook) = &self.profile.hooks.lease {
            hook.called(what, now.saturating_since(sent), answer.as_ref().map(drop).map_err(ErrLock::kind));
        }
    }

    pub(super) fn outcome(&mut self, outcome: &Outcome, machine: &Machine, now: Moment) {
        let (what, sent) = self.call;
        let call = what.as_str();
        match outcome {
            Outcome::Worked { lasting } => {
                if *lasting {
                    self.calls.settle(now);
                    self.stuck.settle(now);
                }
                self.worked(what, sent, machine, now);
            }
            Outcome::Gone => {}
            Outcome::LostRace(error) | Outcome::Failed(error) if error.kind() == ErrLockKind::Conflict => {
                tracing::debug!(call, "another candidate was faster: {error}");
            }
            // The layer says so itself.
            Outcome::Failed(error) if error.kind() == ErrLockKind::Withheld => {
                tracing::debug!(call, "a layer of the lock has withheld the answer: {error}");
            }
            Outcome::LostRace(error) | Outcome::Failed(error) => {
                let (pause, advice) = error.kind().advice().map_or(("", ""), |advice| ("; ", advice));
                let details = format_args!("{call}: {error}{pause}{advice}");
                self.calls.raise(error.kind().as_str(), &details, now);
            }
        }
    }

    fn worked(&self, what: LeaseCall, sent: Moment, machine: &Machine, now: Moment) {
        match what {
            LeaseCall::Acquire | LeaseCall::Renew if machine.is_current() => {
                self.profile.liveness.note_renewal(Some(sent));
                if let Some(until) = machine.waits_until(sent).filter(|_| what == LeaseCall::Acquire) {
                    let at_most = until.saturating_since(now);
                    tracing::info!(
                        ?at_most,
                        "the lease is taken; writes wait until the former holder's writes have ended"
                    );
                }
            }
            LeaseCall::Release => tracing::info!("the lease was released"),
            LeaseCall::Acknowledge => {
                tracing::info!("told the preempting holder that the last write has ended");
            }
            LeaseCall::Read | LeaseCall::Acquire | LeaseCall::Renew | LeaseCall::Ask => {}
        }
    }

    /// Tells that the gate closes, and admitted writes finish.
    pub(super) fn drains(machine: &Machine) {
        if machine.is_mine() {
            tracing::info!("giving the lease up for another candidate");
        }
    }

    /// Tells that the writes of a term that gives way are cut off.
    pub(super) fn ends(loss: Loss, leadership: &Leadership) {
        if loss == Loss::Abandoned {
            let writes = leadership.writes_under_way();
            tracing::warn!(
                writes,
                "admitted writes are cut off: they did not finish within the drain timeout"
            );
        }
    }
}
