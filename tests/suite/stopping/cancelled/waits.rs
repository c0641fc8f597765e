//! Futures and streams that wait for news: after a drop, the next call gets what the dropped one would have got.

use crate::{
    stopping::cancelled::orphan::pass_ms,
    support::{FIRST, SOON, candidate, pass, steal, until, within},
};
use futures_util::{Stream, StreamExt};
use kube_leader_gate::{
    election::{LeaseEnd, Running},
    leadership::{Grantor, LeadershipState, Loss, Term},
    shutdown_signal,
    testing::{ApiServer, TokioClock},
};
use std::{sync::Arc, time::Duration};
use test_support::cancellation::{Cut, dropped_at_each_poll, dropped_at_polls, tasks};
use tokio::time::{Instant, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn term(number: u64) -> Term {
    Term::new("uid", number)
}

/// The owner of a leadership, on tokio's clock.
fn grantor() -> Grantor {
    Grantor::with_clock(Arc::new(TokioClock::new()))
}

#[test]
fn elected_dropped_at_each_poll_misses_no_term() {
    let worlds = dropped_at_each_poll(async |cut| {
        let server = ApiServer::new();
        let a = candidate(&server, "a").start();
        let leader = a.candidate();
        let elected = cut.off(leader.elected()).await;
        assert!(elected.is_none_or(|term| Some(term) == leader.term()));
        let elected = within(FIRST, "a leads", leader.elected()).await;
        assert_eq!(Some(elected), leader.term());
        drop(a);
        until(SOON, "no task is left", || tasks() == 0).await;
    });
    assert!(worlds > 3, "{worlds}");
}

#[test]
fn elected_of_a_leadership_dropped_at_each_poll_misses_no_term() {
    let worlds = dropped_at_each_poll(async |cut| {
        let grantor = Arc::new(grantor());
        let leadership = grantor.leadership();
        let granting = tokio::spawn(async move {
            for holder in ["x", "y", "z"] {
                grantor.note_holder(Some(holder));
                pass_ms(1).await;
            }
            let grant = grantor.grant(term(1), grantor.now().saturating_add(SECOND)).expect("in time");
            pass_ms(100).await;
            drop((grant, grantor));
        });
        let elected = cut.off(leadership.elected()).await;
        assert_eq!(elected.unwrap_or(within(SOON, "it leads", leadership.elected()).await), term(1));
        granting.await.expect("no panic");
    });
    assert!(worlds > 5, "{worlds}");
}

#[test]
fn ended_dropped_at_each_poll_tells_the_end() {
    let worlds = dropped_at_each_poll(async |cut| {
        let server = ApiServer::new();
        let a = candidate(&server, "a").start();
        let leader = a.candidate().clone();
        let stopping = tokio::spawn(async move {
            pass(FIRST).await;
            a.stop().await
        });
        let ended = cut.off(leader.ended()).await;
        assert!(ended.is_none_or(|ended| ended == Ok(LeaseEnd::Released)));
        assert_eq!(leader.ended().await, Ok(LeaseEnd::Released));
        stopping.await.expect("no panic");
    });
    assert!(worlds > 2, "{worlds}");
}

/// All items of a stream, which is left at some poll of `next` and then read on.
async fn all<S: Stream + Unpin>(cut: &Cut, mut stream: S) -> Vec<S::Item> {
    let mut items = Vec::new();
    let read = async {
        while let Some(item) = stream.next().await {
            items.push(item);
        }
    };
    cut.off(read).await;
    while let Some(item) = stream.next().await {
        items.push(item);
    }
    items
}

/// Leads, loses the lease to an outsider for 15 s, leads again, and stops.
async fn two_terms(server: ApiServer, a: Running) {
    within(FIRST, "a leads", a.candidate().elected()).await;
    pass(SECOND).await;
    steal(&server);
    within(17 * SECOND, "a leads again", async {
        until(SOON, "it is lost", || !a.candidate().is_leader()).await;
        a.candidate().elected().await
    })
    .await;
    pass(SECOND).await;
    a.stop().await;
}

#[test]
fn changes_dropped_at_each_poll_lose_no_state() {
    let worlds = dropped_at_each_poll(async |cut| {
        let server = ApiServer::new();
        let a = candidate(&server, "a").start();
        let changes = a.candidate().changes();
        let playing = tokio::spawn(two_terms(server, a));
        let states = all(cut, changes).await;
        let led = |state: &LeadershipState| state.term.as_ref().map(Term::transitions);
        let mut terms: Vec<_> = states.iter().filter_map(led).collect();
        terms.dedup();
        assert_eq!(terms, [0, 8], "{states:?}");
        assert!(states.iter().any(|state| state.lost == Some(Loss::Taken)), "{states:?}");
        assert_eq!(states.last().expect("a state").lost, Some(Loss::Released));
        playing.await.expect("no panic");
    });
    assert!(worlds > 8, "{worlds}");
}

#[test]
fn gains_dropped_at_each_poll_lose_no_gain() {
    let worlds = dropped_at_each_poll(async |cut| {
        let server = ApiServer::new();
        let a = candidate(&server, "a").start();
        let gains = a.candidate().gains();
        let playing = tokio::spawn(two_terms(server, a));
        assert_eq!(all(cut, gains).await.len(), 2);
        playing.await.expect("no panic");
    });
    assert!(worlds > 5, "{worlds}");
}

#[test]
fn next_change_dropped_at_each_poll_loses_no_state() {
    let worlds = dropped_at_each_poll(async |cut| {
        let grantor = grantor();
        let mut changes = grantor.leadership().changes();
        let playing = tokio::spawn(async move {
            for number in 1..4 {
                let grant =
                    grantor.grant(term(number), grantor.now().saturating_add(SECOND)).expect("in time");
                pass_ms(1).await;
                grant.end(Loss::Taken);
                pass_ms(1).await;
            }
        });
        let mut terms = Vec::new();
        let read = async {
            while let Some(state) = changes.next().await {
                terms.push(state.term);
            }
        };
        cut.off(read).await;
        while let Some(state) = changes.next().await {
            terms.push(state.term);
        }
        let led: Vec<_> = terms.into_iter().flatten().collect();
        assert_eq!(led, [term(1), term(2), term(3)]);
        playing.await.expect("no panic");
    });
    assert!(worlds > 6, "{worlds}");
}

/// Two writes end one after the other, behind a closed gate.
#[test]
fn drain_dropped_at_each_poll_can_be_repeated() {
    let worlds = dropped_at_each_poll(async |cut| {
        let grantor = grantor();
        let leadership = grantor.leadership();
        let _grant = grantor.grant(term(1), grantor.now().saturating_add(SECOND)).expect("in time");
        let writes = [10, 20].map(|time| (leadership.admit().expect("it leads"), time));
        grantor.close();
        let writing = tokio::spawn(async move {
            for (mut write, time) in writes {
                pass_ms(time).await;
                write.answered();
            }
        });
        let begun = Instant::now();
        let drained = cut.off(leadership.drain(SECOND)).await;
        assert_eq!(drained.unwrap_or(leadership.drain(SECOND).await), Ok(()));
        assert_eq!((leadership.writes_under_way(), leadership.unanswered()), (0, None));
        assert!(begun.elapsed() >= Duration::from_millis(30));
        writing.await.expect("no panic");
    });
    assert!(worlds > 2, "{worlds}");
}

/// The test sends the signal to its own process. No test program ends by it once one of these futures was made.
#[test]
fn shutdown_signal_dropped_at_each_poll_leaves_the_signal_to_others() {
    let worlds = dropped_at_each_poll(async |cut| {
        let (other, dropped) = (shutdown_signal().expect("signals"), shutdown_signal().expect("signals"));
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM)
            .expect("a signal to itself");
        cut.off(dropped).await;
        other.await;
    });
    assert!(worlds > 1, "{worlds}");
}

/// The gate closes on time without it. A task that waits for the end of its term is woken by the next one.
#[test]
fn s1_watch_deadline_dropped_at_each_poll_keeps_no_gate_open() {
    let worlds = dropped_at_each_poll(async |cut| {
        let grantor = grantor();
        let leadership = grantor.leadership();
        let deadline = grantor.now().saturating_add(5 * SECOND);
        let grant = grantor.grant(term(1), deadline).expect("in time");
        let (watching, next) = (grantor.watch_deadline(), grantor.watch_deadline());
        let extending = tokio::spawn(async move {
            pass(SECOND).await;
            grant.extend(deadline.saturating_add(SECOND)).expect("in time");
            pass(6 * SECOND).await;
            // The future ends with the grantor.
            drop((grant, grantor));
        });
        let write = leadership.admit().expect("it leads");
        cut.off(watching).await;
        let next = tokio::spawn(next);
        if write.is_valid() {
            within(7 * SECOND, "the waiting write is woken", write.term_ended()).await;
        }
        assert!(
            !write.is_valid()
                && !leadership.can_write()
                && leadership.now() >= deadline.saturating_add(SECOND)
        );
        extending.await.expect("no panic");
        within(SOON, "it ends", next).await.expect("no panic");
    });
    assert!(worlds > 10, "{worlds}");
}

#[test]
fn term_ended_dropped_at_each_poll_can_be_repeated() {
    let worlds = dropped_at_polls(3, async |cut| {
        let grantor = grantor();
        let leadership = grantor.leadership();
        let grant = grantor.grant(term(1), grantor.now().saturating_add(SECOND)).expect("in time");
        let write = leadership.admit().expect("it leads");
        let ending = tokio::spawn(async move {
            pass_ms(10).await;
            grant.end(Loss::Taken);
        });
        cut.off(write.term_ended()).await;
        let woken = write.term_ended();
        if write.is_valid() {
            timeout(SOON, woken).await.expect("it is woken");
        }
        assert_eq!((write.is_valid(), write.loss()), (false, Loss::Taken));
        ending.await.expect("no panic");
    });
    assert!(worlds > 1, "{worlds}");
}
