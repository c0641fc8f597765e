//! What the elector tells people and observers: the log, trouble, the last known holder, and signs of life.

use super::{
    candidate::Profile,
    hooks::LeaseCall,
    lease_watch::{WORKS, WatchNews},
    machine::{Call, Machine},
    program::{OPENING, REFUSED},
};
use crate::{
    leadership::{Grantor, Moment},
    lease::{ErrLock, ErrLockKind, LeaseRecord},
    rate_limited_log::RateLimitedLog,
};
use std::{
    fmt::Display,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// What the Role of a candidate has to grant.
const ROLE: &str = "grant it get, create, update and watch on leases in coordination.k8s.io, by a Role";

pub(super) struct Report {
    pub(super) profile: Arc<Profile>,
    /// A missing watch is no trouble, so it is only logged.
    watch: RateLimitedLog,
    watched: Option<Watched>,
    /// How many watches in a row have shown nothing, although the lease exists.
    mute: u32,
}

// The sorts of trouble.
const STUCK: &str = "lease calls stay on a connection that hangs";
const CALLS: &str = "lease calls fail";
const FORMER: &str = "no candidate may lead before a former holder's time is over";
const ODDITY: &str = "the lease makes no sense";
const QUESTION: &str = "the lease is kept for a candidate that has asked for it";

/// A candidate always waits for a short random time before it takes a free lease. The log names a wait from this length on.
const WORTH_A_WORD: Duration = Duration::from_secs(1);

/// Gives the troubles of the lease their order: observers see the first one that lasts.
pub(super) fn rank_troubles(grantor: &Grantor) {
    for what in [STUCK, CALLS, FORMER, ODDITY, REFUSED, OPENING, QUESTION] {
        grantor.set_trouble(what, None);
    }
}

/// The present watch.
struct Watched {
    since: Moment,
    /// It has shown the lease.
    has_shown: bool,
}

impl Report {
    pub(super) fn new(profile: Arc<Profile>) -> Self {
        Self {
            profile,
            watch: RateLimitedLog::new("the lease cannot be watched; it is polled, so handovers take longer"),
            watched: None,
            mute: 0,
        }
    }

    /// Reports what the machine knows now. `leads` says whether this process has a term.
    pub(super) fn tell(&mut self, machine: &Machine, leads: bool, grantor: &Grantor, now: Moment) {
        let liveness = &self.profile.liveness;
        liveness.note_run(now);
        let record = machine.record();
        if record.is_some() {
            liveness.seen.store(true, Ordering::Release);
        }
        let holder = record.and_then(LeaseRecord::holder);
        if grantor.leadership().holder().as_deref() != holder {
            if holder.is_some() {
                tracing::info!(holder, "the lease has changed hands");
            } else {
                let free_in = machine.free_in(now).filter(|wait| *wait >= WORTH_A_WORD);
                let free_in = free_in.map(tracing::field::debug);
                tracing::info!(free_in, "no candidate holds the lease");
            }
            grantor.note_holder(holder);
            if let Some(why) = machine.earlier_process() {
                tracing::warn!("{why}");
            }
        }
        if let Some(watched) = &self.watched
            && now.saturating_since(watched.since) >= WORKS
        {
            if watched.has_shown {
                self.watch.settle(now);
            } else if record.is_some() && self.mute == 0 {
                self.complain_of_a_mute_watch(now);
            }
        }
        // Either a call has succeeded, or this candidate, as a follower, has seen a write of another candidate, perhaps
        // through its watch. A read that succeeds between two failed writes does not count as a success.
        if !machine.is_failing() && !machine.is_ending() {
            grantor.set_trouble(CALLS, None);
            grantor.set_trouble(STUCK, None);
        }
        let oddity = machine.oddity();
        grantor.set_trouble(ODDITY, oddity.as_ref().map(|(kind, text)| (*kind, text as &dyn Display)));
        let set = |what, kind, text: Option<String>| {
            grantor.set_trouble(what, text.as_ref().map(|text| (kind, text as &dyn Display)));
        };
        set(FORMER, "former holder", machine.long_wait(now));
        set(QUESTION, "unanswered question", machine.unanswered_question(now));
        if let Some(hook) = &self.profile.hooks.lease {
            hook.vacant(!leads && machine.is_free(now), now);
        }
    }

    pub(super) fn watched(&mut self, news: &WatchNews, machine: &Machine, now: Moment) {
        match news {
            WatchNews::Up => self.watched = Some(Watched { since: now, has_shown: false }),
            WatchNews::Down(error) => {
                let watched = self.watched.take();
                if let Some(error) = error {
                    self.watch.raise(error.kind().as_str(), &error.explain(ROLE), now);
                } else if watched.is_some_and(|watched| !watched.has_shown) && machine.record().is_some() {
                    self.complain_of_a_mute_watch(now);
                }
            }
            WatchNews::Event(_) => {
                self.mute = 0;
                self.watched.iter_mut().for_each(|watched| watched.has_shown = true);
            }
        }
    }

    /// Takes in that a watch is open, but shows nothing of the lease. One short watch proves nothing: a slow server may
    /// have had no time to show the lease. So this logs the trouble only if the watch lasts, or if it is the second one
    /// in a row.
    fn complain_of_a_mute_watch(&mut self, now: Moment) {
        self.mute += 1;
        let lasts = self.watched.as_ref().is_some_and(|watched| now.saturating_since(watched.since) >= WORKS);
        if lasts || self.mute > 1 {
            let details =
                "the watch is open, and shows nothing; look for a proxy on the way that holds answers back";
            self.watch.raise("mute", &details, now);
        }
    }

    pub(super) fn begins(call: &Call) {
        let holder = call.seen.as_ref().and_then(LeaseRecord::holder);
        if call.what == LeaseCall::Ask {
            tracing::info!(holder, "asking the holder, which has a lower precedence, for the lease");
        }
    }

    /// Reports how a call has ended that was `sent` at this moment. `stuck` says why the next call cannot use a fresh connection.
    pub(super) fn answers(
        &self,
        (what, sent): (LeaseCall, Moment),
        answer: &Result<Option<LeaseRecord>, ErrLock>,
        stuck: Option<&'static str>,
        grantor: &Grantor,
        now: Moment,
    ) {
        if let Some(why) = stuck {
            grantor.set_trouble(STUCK, Some(("no fresh client", &why)));
        }
        if let Some(hook) = &self.profile.hooks.lease {
            hook.called(what, now.saturating_since(sent), answer.as_ref().map(drop).map_err(ErrLock::kind));
        }
    }

    /// Tells what the machine has made of the answer.
    pub(super) fn outcome(
        what: LeaseCall,
        outcome: Result<(), ErrLock>,
        machine: &Machine,
        grantor: &Grantor,
        now: Moment,
    ) {
        let call = what.as_str();
        match outcome {
            Ok(()) => Self::worked(what, machine, now),
            Err(error) if error.kind() == ErrLockKind::Conflict && !machine.loses_each_race() => {
                tracing::debug!(call, "another candidate was faster: {error}");
            }
            // The layer says so itself.
            Err(error) if error.kind() == ErrLockKind::Withheld => {
                tracing::debug!(call, "a layer of the lock has withheld the answer: {error}");
            }
            Err(error) => {
                let details = format_args!("{call}: {}", error.explain(ROLE));
                grantor.set_trouble(CALLS, Some((error.kind().as_str(), &details)));
            }
        }
    }

    fn worked(what: LeaseCall, machine: &Machine, now: Moment) {
        match what {
            LeaseCall::Acquire => {
                if let Some((_, until)) = machine.waits_for(now).filter(|_| machine.has_term()) {
                    let at_most = until.saturating_since(now);
                    tracing::info!(
                        ?at_most,
                        "the lease is taken; writes wait until the former holder's writes have ended"
                    );
                }
            }
            // It may have found no lease.
            LeaseCall::Release if machine.record().is_some() => tracing::info!("the lease was released"),
            _ => {}
        }
    }
}
