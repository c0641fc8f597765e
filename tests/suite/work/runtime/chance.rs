//! Random changes, deletions, broken watches, gains and losses: the leader's view always becomes the server's state.

use crate::{
    support::{LEASE, pass, steal, within},
    work::runtime::things::{depose, path, want},
    work::runtime::viewer::{View, Viewer, truth, viewer},
};
use fastrand::Rng;
use kube_leader_gate::testing::{ApiServer, Fault, WatchBreak};
use std::time::Duration;

const SEEDS: u64 = 30;
const STEPS: usize = 120;

#[tokio::test(start_paused = true)]
async fn random_changes_are_never_missed() {
    let (mut terms, mut applied, mut deleted) = (0, 0, 0);
    for seed in 0..SEEDS {
        let server = ApiServer::builder().event_history(64).build();
        let a = viewer(&server, "a").await;
        let view = View::default();
        tokio::select! {
            () = a.follow(view.clone()) => unreachable!("it follows for ever"),
            () = play(seed, &server, &a, &view) => {}
        }
        let seen = view.seen();
        terms += seen.terms;
        applied += seen.applied;
        deleted += seen.deleted;
    }
    println!("{SEEDS} seeds: {terms} terms, {applied} changes and {deleted} deletions told live");
    assert!(terms > 60 && applied > 1_000 && deleted > 100, "the seeds do too little");
}

async fn play(seed: u64, server: &ApiServer, a: &Viewer, view: &View) {
    let mut rng = Rng::with_seed(seed);
    let mut outage = None;
    for step in 0..STEPS {
        let name = format!("x{}", rng.u8(..12));
        match rng.u8(..40) {
            0..20 => want(server, &name, &step.to_string()),
            20..29 if server.object(&path(&name)).is_some() => {
                server.delete("outsider", &path(&name)).expect("it is there");
            }
            29..31 => drop(server.break_watches(
                |_| true,
                *rng.choice(&[WatchBreak::End, WatchBreak::Cut, WatchBreak::Garbage]).unwrap(),
            )),
            31 => server.compact(),
            32 => outage = Some(server.inject(Fault::status(503).resource("configmaps"))),
            33 => outage = None,
            34 if server.object(LEASE).is_some() => depose(server),
            35 if server.object(LEASE).is_some() => steal(server),
            36 => pass(Duration::from_millis(rng.u64(..20_000))).await,
            // More changes at once than the buffer of a consumer holds.
            37 => (0..400).for_each(|burst| want(server, &name, &format!("{step}/{burst}"))),
            _ => pass(Duration::from_millis(rng.u64(..5))).await,
        }
        if step % 30 == 29 {
            outage = None;
            let settled = || {
                let told = view.seen();
                told.complete && a.candidate().can_write() && told.model == truth(server)
            };
            let settle = async {
                while !settled() {
                    pass(Duration::from_millis(100)).await;
                }
            };
            within(Duration::from_secs(90), &format!("seed {seed}, step {step}: the view is right"), settle)
                .await;
        }
    }
    drop(outage);
}
