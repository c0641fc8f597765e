//! Leaders that are frozen at random instants while they write without a pause, on many leases of one server at once.
//!
//! A freeze lasts until another candidate has taken the lease and has written. What the frozen one had sent before may
//! meanwhile be on its way, or in the server: that is the stall.

use crate::{
    Failure,
    apiserver::{self, Assets, SlowWebhook},
    args::Freezes,
    elector::{Elector, Layers, Pace},
    freezes_table::{Frozen, table},
    journal::{Journal, micros},
    proxy::Mode,
    site::Site,
    stage::{Cast, Stage},
    stall::Stall,
};
use fastrand::Rng;
use futures_util::future::join_all;
use kube_leader_gate::LeaseTiming;
use rustix::process::Signal;
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep, sleep_until};

/// How long a follower waits after a rejected write.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest time from the beginning of a stall to the freeze, so that writes are caught in it.
const CAUGHT: Duration = Duration::from_millis(150);
/// How long what has left a process may take to the webhook.
const ARRIVES: Duration = Duration::from_millis(300);
/// The longest time from the takeover, or from the end of the stall if that is later, to the end of the freeze.
const SLEEPS_ON: Duration = Duration::from_millis(100);

/// One lease.
struct Group {
    stage: Stage,
    layers: Layers,
    timing: LeaseTiming,
    webhook: Option<SlowWebhook>,
}

/// The error names a write that the layers must stop, an election that does not progress, or a candidate that ended by
/// itself.
pub async fn run(assets: &'static Assets, options: Freezes) -> Result<(), Failure> {
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let journal = Arc::new(Journal::create(options.timeline.as_deref(), &format!("freezes-{seed}"))?);
    let site = Arc::new(Site::open(assets).await);
    let mut groups = Vec::new();
    for number in 0..usize::from(options.leases) {
        let layers = options.layers[number % options.layers.len()];
        groups.push(Group::new(&site, number, layers, &options, &journal).await?);
    }
    let left: Vec<_> = options.layers.iter().map(|_| AtomicUsize::new(options.count)).collect();
    let playing = groups.iter().enumerate().map(|(number, group)| {
        let rng = Rng::with_seed(seed.wrapping_add(number as u64));
        group.play(rng, &options.stalls, &left[number % left.len()])
    });
    let began = Instant::now();
    let (mut frozen, mut failures) = (Vec::new(), Vec::new());
    for (group, (played, outcome)) in groups.iter().zip(join_all(playing).await) {
        group.stage.mend();
        failures.extend(outcome.err());
        failures.extend(group.stage.roster.stop_all(group.stage.stop_bound()).await);
        frozen.extend(group.judged(&played)?);
    }
    println!(
        "{} freezes in {:.0?} at {} s, seed {seed}, {} leases, {} writers each\n{}timeline: {}",
        frozen.len(),
        began.elapsed(),
        options.timing,
        options.leases,
        options.writers,
        table(&frozen),
        journal.path.display(),
    );
    let broken = frozen.iter().filter(|it| it.is_broken()).count();
    if broken > 0 {
        failures.push(format!("in {broken} freezes a write took effect that the layers must stop").into());
    }
    if failures.is_empty() {
        return Ok(());
    }
    Err(failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n").into())
}

/// One freeze as it was played.
struct Played {
    stall: Stall,
    begun: Instant,
    thawed: Instant,
}

impl Group {
    async fn new(
        site: &Arc<Site>,
        number: usize,
        layers: Layers,
        options: &Freezes,
        journal: &Arc<Journal>,
    ) -> Result<Self, Failure> {
        let cast = Cast {
            numbers: 2 * number..2 * number + 2,
            elector: Elector::Gate,
            timing: options.timing,
            layers,
            pace: Pace { writers: options.writers, every: PAUSE, restless: true },
        };
        let stage = Stage::on(site.clone(), cast, journal.clone()).await?;
        let webhook = if options.stalls.iter().any(|it| it.is_in_server()) {
            Some(
                SlowWebhook::register(
                    &site.cluster,
                    &stage.namespace,
                    apiserver::Stage::Validating,
                    Duration::ZERO,
                )
                .await,
            )
        } else {
            None
        };
        Ok(Self { stage, layers, timing: options.timing, webhook })
    }

    /// Plays freezes until none is left, or until one fails.
    async fn play(
        &self,
        mut rng: Rng,
        stalls: &[Stall],
        left: &AtomicUsize,
    ) -> (Vec<Played>, Result<(), Failure>) {
        let mut played = Vec::new();
        while left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            let stall = stalls[rng.usize(..stalls.len())];
            match self.freeze(stall, &mut rng).await {
                Ok(one) => played.push(one),
                Err(error) => return (played, Err(format!("{}, {}: {error}", self.layers, stall).into())),
            }
        }
        (played, Ok(()))
    }

    async fn freeze(&self, stall: Stall, rng: &mut Rng) -> Result<Played, Failure> {
        let Stage { roster, journal, .. } = &self.stage;
        // Between two renewals, at any point.
        sleep(self.timing.retry_period().mul_f64(2.0 * rng.f64())).await;
        let seat = self.stage.settled(Instant::now()).await?;
        let line = roster.line(seat);
        if stall.is_on_line() {
            line.set(Mode::HoldUp);
        }
        self.slow(stall.holds(self.timing));
        if stall != Stall::None {
            sleep(CAUGHT.mul_f64(rng.f64())).await;
        }
        let begun = Instant::now();
        let at = micros();
        roster.signal(seat, Signal::STOP);
        let opens = begun + stall.arrives(self.timing, rng.f64());
        let open = async {
            if stall.is_on_line() {
                sleep_until(opens).await;
                line.set(Mode::Open);
            }
            sleep(ARRIVES).await;
            self.slow(Duration::ZERO);
            // A process that wakes hangs up, and the server then gives its writes up.
            sleep(stall.holds(self.timing)).await;
        };
        let ((), taken) = tokio::join!(open, self.stage.succeeded(seat));
        let taken = taken?;
        sleep(SLEEPS_ON.mul_f64(rng.f64())).await;
        let thawed = Instant::now();
        roster.signal(seat, Signal::CONT);
        journal.note(
            "freeze",
            json!({
                "layers": self.layers.to_string(), "stall": stall.to_string(), "frozen": roster.identity(seat),
                "from": at, "leads": roster.identity(taken),
            }),
        );
        Ok(Played { stall, begun, thawed })
    }

    fn slow(&self, takes: Duration) {
        if let Some(webhook) = &self.webhook {
            webhook.set(takes);
        }
    }

    fn judged(&self, played: &[Played]) -> Result<Vec<Frozen>, Failure> {
        let (late, writes) = self.stage.late()?;
        let ends = played.iter().skip(1).map(|next| Some(next.begun)).chain([None]);
        let mut frozen = Vec::new();
        for (one, end) in played.iter().zip(ends) {
            let own = |at: Instant| at >= one.begun && end.is_none_or(|end| at < end);
            let late: Vec<_> = late.iter().filter(|it| own(it.acquired.at)).copied().collect();
            for it in &late {
                self.stage.journal.note(
                    "late",
                    json!({
                        "layers": self.layers.to_string(), "stall": one.stall.to_string(), "end": it.end,
                        "by_micros": it.by.as_micros(), "after_a_write": it.after_a_write,
                        "received_after_freeze_micros": it.received.at.saturating_duration_since(one.begun).as_micros(),
                        "received_after_thaw": it.received.at >= one.thawed,
                    }),
                );
            }
            let writes = writes.iter().filter(|at| own(**at)).count();
            frozen.push(Frozen { layers: self.layers, stall: one.stall, late, writes });
        }
        Ok(frozen)
    }
}
