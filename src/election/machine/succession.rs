//! Whom news of the lease leave behind: a holder that may still write.

use super::{
    claims::HeldBy,
    former::{Formers, Who},
    state::{Machine, ObservedLease},
};
use crate::{
    election::preemption::Handover,
    leadership::{Moment, Term},
    lease::LeaseRecord,
};

/// Notes who may still write if `news` takes the place of what is known, and heeds the word of former writers in it. If it
/// holds a claim of this process, that was `tried` then.
pub(super) fn note(machine: &mut Machine, news: &LeaseRecord, tried: Option<Moment>, at: Moment) {
    let held_by = machine.held_by();
    let stays = machine.record().is_some_and(|known| {
        // The holder's time is no longer in the lease.
        let edited = known.sane_duration().is_some_and(|it| Some(it) != news.duration())
            && (known.renew_time() == news.renew_time() || news.sane_duration().is_none());
        let same = !edited && known.holder() == news.holder();
        known.term() == news.term() && (held_by.is_mine() || same)
    });
    if !stays {
        // A claim speaks of whom it waited for when it was tried, so its gate opens with the next renewal.
        let since = tried.unwrap_or(at);
        let replaced = replaced_by(machine, news, held_by, at);
        let freed = freed_by_hand(machine.record(), news, at);
        let freed = freed.filter(|(who, _)| replaced.as_ref().is_none_or(|(it, _)| it != who));
        for (who, until) in replaced.into_iter().chain(freed) {
            machine.formers.add(who, until, since);
        }
        if machine.record().is_some_and(|known| comes_again(known, news)) {
            machine.formers.lose_count(news.uid());
        }
    }
    // A holder waits for one before it. This candidate knows of its own term, and whom its claims wait for.
    let written = |record: &LeaseRecord| Handover::written_in(record).filter(|handover| !handover.done);
    let known = machine.record().filter(|known| known.uid() == news.uid()).and_then(written);
    if let Some(handover) = written(news).filter(|handover| tried.is_none() && known != Some(*handover)) {
        let of = Term::new(news.uid(), handover.from);
        let saw = machine.record().is_some_and(|known| known.term() == of && known.acquire_time().is_some());
        if !machine.own.is_of(&of) && !saw {
            let duration = machine.me.timing.lease_duration();
            let until = machine.held_until(news, at).max(at.saturating_add(duration));
            machine.formers.add(Who::new(None, of), until, at);
        }
    }
    // Old news prove nothing.
    if news.version() == Some(machine.observed.newest) {
        let known = machine.record().cloned();
        machine.formers.hear(news, known.as_ref());
    }
}

/// Notes the holder of the lease that is known, since the lease was deleted.
pub(super) fn note_deleted(machine: &mut Machine, at: Moment) {
    if let ObservedLease::Present { record, until, .. } = &machine.observed.known
        && record.holder().is_some()
    {
        machine.formers.add(Who::holder_of(record), *until, at);
    }
}

/// The holder that `news` replaces, and until when it may write. None if there is none, or if it has released the lease.
/// Its time counts from when its last renewal was first seen, or from now if a renewal may have been missed.
/// What happened in between may not have been shown, so who holds the lease now says nothing of it.
fn replaced_by(machine: &Machine, news: &LeaseRecord, held_by: HeldBy, at: Moment) -> Option<(Who, Moment)> {
    let ObservedLease::Present { record, until, .. } = &machine.observed.known else { return None };
    // A holder that releases the lease writes the time.
    let acquired = record.acquire_time() == news.acquire_time();
    let released = news.is_released() && news.term() == record.term() && !acquired;
    // Of its own writes this candidate knows, and an earlier process with this identity has ended.
    if released || !matches!(held_by, HeldBy::Other | HeldBy::Double) {
        return None;
    }
    // A renewal that was not shown came before an edit, and perhaps before a wipe or a restored backup.
    // The count begins again after its maximum.
    let back = (news.transitions().saturating_add(1)..i32::MAX as u64).contains(&record.transitions());
    let edited = acquired || news.renew_time().is_none() || back;
    let renewed = news.uid() == record.uid() && edited && record.renew_time() != news.renew_time();
    let duration = record.sane_duration().max(news.sane_duration());
    let duration = duration.unwrap_or(machine.me.timing.lease_duration());
    let until = if renewed { (*until).max(at.saturating_add(duration)) } else { *until };
    Some((Who::holder_of(record), until))
}

/// Whether the counts of this lease come again, so that they do not say who speaks.
fn comes_again(known: &LeaseRecord, news: &LeaseRecord) -> bool {
    let taken = news.acquire_time().is_some() && ![None, known.holder()].contains(&news.holder());
    let next = known.transitions().saturating_add(taken.into());
    known.uid() == news.uid() && news.transitions() < next
}

/// The last holder of a lease that was not released: it has no holder, and still the times of one. A holder that was seen
/// has its own time; of another one the time counts from now.
fn freed_by_hand(known: Option<&LeaseRecord>, news: &LeaseRecord, at: Moment) -> Option<(Who, Moment)> {
    let freed = news.holder().is_none() && news.renew_time().is_some() && !news.is_released();
    let duration = news.duration().filter(|_| freed)?;
    let name = known.filter(|known| known.term() == news.term()).and_then(LeaseRecord::holder);
    Some((Who::new(name, news.term()), at.saturating_add(duration)))
}

/// Who may still write if this candidate takes the lease at `now`.
pub(super) fn of_a_claim(machine: &Machine, now: Moment) -> Formers {
    let mut formers = machine.formers.clone();
    if let ObservedLease::Present { record, until, .. } = &machine.observed.known
        && machine.held_by() == HeldBy::Other
    {
        formers.add(Who::holder_of(record), *until, now);
    }
    formers
}
