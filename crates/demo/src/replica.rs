//! One replica, as close to a program of its own as possible. It has an OS thread with a single-threaded runtime:
//! blocking the thread freezes the replica, and dropping the runtime crashes it.

use crate::{
    Failure,
    stage::Role,
    workload::{self, Counters, Counts},
};
use kube_client::Api;
use kube_leader_gate::{Candidate, Election, Identity, leadership::Term};
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc as blocking,
    },
    thread,
    time::Duration,
};
use tokio::{
    runtime,
    sync::{mpsc, oneshot},
    time::timeout,
};

/// The longest freeze, even if the thread that should end it fails.
const LONGEST_FREEZE: Duration = Duration::from_secs(30);
/// An orderly stop takes milliseconds, unless the API does not answer.
const LONGEST_STOP: Duration = Duration::from_secs(5);

pub struct Replica {
    role: Role,
    counters: Arc<Counters>,
    life: Mutex<Option<Life>>,
}

/// What a replica looks like from outside.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    Down,
    /// Its gate rejects writes.
    Follows,
    /// Its gate is open.
    Leads,
    /// Its thread stands still.
    Frozen {
        gate_open: bool,
    },
}

struct Life {
    orders: mpsc::UnboundedSender<Order>,
    candidate: Candidate,
    thaw: Option<blocking::Sender<()>>,
    over: oneshot::Receiver<()>,
}

enum Order {
    Stop,
    Crash,
    Freeze(blocking::Receiver<()>),
}

impl Replica {
    pub fn new(role: Role) -> Self {
        Self { role, counters: Arc::default(), life: Mutex::new(None) }
    }

    pub fn name(&self) -> &'static str {
        self.role.name
    }

    pub fn counts(&self) -> Counts {
        self.counters.now()
    }

    /// The handle of its election. It is right on any thread, also while the replica is frozen.
    pub fn candidate(&self) -> Option<Candidate> {
        self.life().as_ref().map(|life| life.candidate.clone())
    }

    pub fn state(&self) -> State {
        match &*self.life() {
            None => State::Down,
            Some(life) if life.thaw.is_some() => State::Frozen { gate_open: life.candidate.can_write() },
            Some(life) if life.candidate.can_write() => State::Leads,
            Some(_) => State::Follows,
        }
    }

    /// The term in which it leads.
    pub fn term(&self) -> Option<Term> {
        self.candidate()?.term()
    }

    pub async fn start(&self) -> Result<(), Failure> {
        let (orders, received) = mpsc::unbounded_channel();
        let (born, birth) = oneshot::channel();
        let (ends, over) = oneshot::channel();
        let (role, counters) = (self.role.clone(), self.counters.clone());
        thread::Builder::new().name(role.name.to_owned()).spawn(move || {
            match runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime.block_on(live(role, counters, received, born)),
                Err(error) => drop(born.send(Err(error.into()))),
            }
            // The runtime has been dropped, with all its tasks and sockets.
            let _ = ends.send(());
        })?;
        let candidate = birth.await??;
        *self.life() = Some(Life { orders, candidate, thaw: None, over });
        Ok(())
    }

    /// Stops in order, as on SIGTERM. Returns true if the replica stopped in time.
    pub async fn stop(&self) -> bool {
        self.end(Order::Stop).await
    }

    /// Crashes it at once.
    pub async fn crash(&self) -> bool {
        self.end(Order::Crash).await
    }

    /// Blocks its thread until [`thaw`](Self::thaw).
    pub fn freeze(&self) {
        if let Some(life) = &mut *self.life() {
            let (thaw, thawed) = blocking::channel();
            if life.orders.send(Order::Freeze(thawed)).is_ok() {
                life.thaw = Some(thaw);
            }
        }
    }

    pub fn thaw(&self) {
        if let Some(life) = &mut *self.life() {
            // Dropping it wakes the thread.
            life.thaw = None;
        }
    }

    async fn end(&self, order: Order) -> bool {
        let Some(life) = self.life().take() else { return true };
        drop(life.thaw);
        let crash = matches!(order, Order::Crash);
        // An error says that the replica has ended already.
        let _ = life.orders.send(order);
        let mut over = life.over;
        if timeout(LONGEST_STOP, &mut over).await.is_ok() {
            return true;
        }
        // If the sender of its orders is gone, the replica ends as in a crash.
        drop(life.orders);
        let ended = timeout(LONGEST_STOP, over).await.is_ok();
        ended && crash
    }

    fn life(&self) -> MutexGuard<'_, Option<Life>> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The program of a replica. When it returns, the runtime drops everything that still runs.
async fn live(
    role: Role,
    counters: Arc<Counters>,
    mut orders: mpsc::UnboundedReceiver<Order>,
    born: oneshot::Sender<Result<Candidate, Failure>>,
) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut program = match start(&role, counters, stop.clone()) {
        Ok((candidate, program)) => {
            // Sending fails only when the demo has ended.
            let _ = born.send(Ok(candidate));
            tokio::spawn(program)
        }
        Err(error) => return drop(born.send(Err(error))),
    };
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(Order::Freeze(thawed)) => drop(thawed.recv_timeout(LONGEST_FREEZE)),
                Some(Order::Stop) => stop.store(true, Ordering::Relaxed),
                Some(Order::Crash) | None => return,
            },
            _ = &mut program => return,
        }
    }
}

fn start(
    role: &Role,
    counters: Arc<Counters>,
    stop: Arc<AtomicBool>,
) -> Result<(Candidate, impl Future<Output = ()> + use<>), Failure> {
    let Role { name, object, pace, .. } = *role;
    let election = Election::builder(&role.namespace, object)
        .identity(Identity::new(name)?)
        .timing(role.timing)
        .build(&role.config)?;
    let client = election.client(&role.config)?;
    let api = Api::namespaced(client, &role.namespace);
    let candidate = election.candidate();
    let program = async move {
        let work = workload::work(api, object, name, pace, &counters, &stop);
        // If the election ends by itself, so does the replica. Its lane then shows that.
        let _ = election.run(work).await;
    };
    Ok((candidate, program))
}
