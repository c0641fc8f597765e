//! What the tasks and the handles of one election tell each other: orders, signs of life, and its end.

use super::{
    ended::{ErrElectionEnded, LeaseEnd},
    machine::Order,
};
use crate::leadership::{Moment, Term};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::watch;

#[derive(Debug)]
pub(super) struct Liveness {
    /// When the election was built.
    pub(super) built: Moment,
    /// Whether this process has seen the lease since the election began.
    pub(super) seen: AtomicBool,
    /// When the last successful renewal was sent; 0 while this process does not hold the lease.
    renewed: AtomicU64,
    pub(super) orders: watch::Sender<Orders>,
    /// Whether the election contends.
    pub(super) contends: watch::Sender<bool>,
    /// How the election ended. None while it runs.
    ended: watch::Sender<Option<Result<LeaseEnd, ErrElectionEnded>>>,
}

/// What the elector shall do.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pub(super) order: Order,
    /// A layer of the lock keeps the election from acquiring the lease.
    pub(super) stands_aside: bool,
    /// How the last [`Order::Stop`] has left the lease. None until it is carried out.
    pub(super) left: Option<LeaseEnd>,
    /// The term that is to end in good order, because a program or a layer has asked for it.
    pub(super) asked: Option<Term>,
}

impl Liveness {
    pub(super) fn new(built: Moment) -> Self {
        Self {
            built,
            seen: AtomicBool::new(false),
            renewed: AtomicU64::new(0),
            orders: watch::Sender::default(),
            contends: watch::Sender::default(),
            ended: watch::Sender::default(),
        }
    }

    /// Records when the last successful renewal was sent. None if this process does not hold the lease.
    pub(super) fn note_renewal(&self, sent: Option<Moment>) {
        self.renewed.store(sent.map_or(0, Moment::as_nanos), Ordering::Release);
    }

    /// When the last successful renewal was sent. None while this process does not hold the lease, as far as it knows.
    pub(super) fn renewed(&self) -> Option<Moment> {
        Some(Moment::from_nanos(self.renewed.load(Ordering::Acquire))).filter(|sent| sent.as_nanos() > 0)
    }

    /// Gives this order to the elector.
    pub(super) fn order(&self, order: Order) {
        self.orders.send_modify(|orders| (orders.order, orders.left) = (order, None));
    }

    /// Records whether the election contends from now on.
    pub(super) fn contend(&self, contends: bool) {
        self.contends.send_if_modified(|it| std::mem::replace(it, contends) != contends);
    }

    /// Records how the election ended. Only the first call counts.
    pub(super) fn end(&self, how: Result<LeaseEnd, ErrElectionEnded>) {
        self.contend(false);
        self.ended.send_if_modified(|ended| {
            let first = ended.is_none();
            if first {
                *ended = Some(how);
            }
            first
        });
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Waits until the election has ended. Cancel-safe.
    pub(super) async fn ended(&self) -> Result<LeaseEnd, ErrElectionEnded> {
        let mut ended = self.ended.subscribe();
        // Cannot fail: `self` keeps the sender.
        let how = ended.wait_for(Option::is_some).await.ok().and_then(|how| *how);
        how.unwrap_or(Err(ErrElectionEnded(())))
    }
}
