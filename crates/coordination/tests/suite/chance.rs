//! Whatever happens to the lease, by chance.

use crate::support::{
    LEASE, SOON, coordinated, is_listed, lease, lease_writes, name, pass, path, prefer, releases, within,
};
use kube_leader_gate::{Candidate, testing::ApiServer};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

/// How many stories are played.
const STORIES: u64 = 60;

/// The lease, and another program that holds it now and then.
struct Story {
    server: ApiServer,
    random: fastrand::Rng,
    told: Vec<String>,
    count: u64,
    /// Until when the other program may write, since it has not released the lease.
    live_until: Option<Instant>,
}

impl Story {
    fn spec(&self) -> Value {
        self.server.object(LEASE).map_or(Value::Null, |mut lease| lease["spec"].take())
    }

    fn write(&mut self, user: &str, spec: &Value) {
        if self.server.object(LEASE).is_some() {
            self.server.edit(user, LEASE, |lease| lease["spec"] = spec.clone()).unwrap();
        } else {
            self.server.put(user, LEASE, lease(spec)).unwrap();
        }
    }

    fn happens(&mut self) {
        self.count += 1;
        let (spec, time) = (self.spec(), format!("2026-01-02T03:04:05.{:06}Z", self.count));
        let (holder, count) = (spec["holderIdentity"].as_str().unwrap_or_default().to_owned(), self.count);
        let what = self.random.u8(..8);
        match what {
            0 => {
                let transitions =
                    spec["leaseTransitions"].as_u64().unwrap_or(0) + u64::from(holder != "other");
                self.write(
                    "other",
                    &json!({ "holderIdentity": "other", "leaseDurationSeconds": 15,
                    "acquireTime": time, "renewTime": time, "leaseTransitions": transitions }),
                );
                self.live_until = Some(Instant::now() + 15 * SECOND);
            }
            1 if holder == "other" && !spec["acquireTime"].is_null() => {
                let mut spec = spec;
                spec["holderIdentity"] = "".into();
                spec["leaseDurationSeconds"] = 1.into();
                (spec["acquireTime"], spec["renewTime"]) = (time.clone().into(), time.into());
                self.write("other", &spec);
                self.live_until = None;
            }
            2 => name(&self.server, "a"),
            3 => name(&self.server, "other"),
            4 if self.server.object(LEASE).is_some() => prefer(&self.server, "third"),
            5 if self.server.object(LEASE).is_some() => {
                self.server.edit("user", LEASE, |lease| lease["spec"]["holderIdentity"] = "".into()).unwrap();
            }
            6 if self.random.u8(..3) == 0 => drop(self.server.delete("user", LEASE)),
            _ => {}
        }
        self.told.push(format!("{count}: {what}, held by {holder:?}"));
    }

    fn check(&self, a: &Candidate) {
        let live = self.live_until.is_some_and(|until| Instant::now() < until);
        assert!(!(live && a.can_write()), "another one may write: {:#?}", self.told);
    }

    async fn goes_on(&mut self, a: &Candidate) {
        let until = Instant::now() + SOON + self.random.u32(..12) * self.random.u32(..2) * SECOND;
        while Instant::now() < until {
            // A theft is seen in a moment.
            pass(SOON / 4).await;
            self.check(a);
        }
    }
}

/// It writes only where it is named, and never beside another program. And no former writer is left that is none.
#[tokio::test(start_paused = true)]
async fn s6_candidate_leads_only_when_named_and_alone() {
    for seed in 0..STORIES {
        let random = fastrand::Rng::with_seed(seed);
        let server = ApiServer::new();
        let mut story =
            Story { server, random, told: vec![format!("seed {seed}")], count: 0, live_until: None };
        let a = coordinated(&story.server, "a").start();
        for _ in 0..story.random.u8(..3) {
            story.happens();
        }
        if story.server.object(LEASE).is_none() {
            // A candidate cannot know of a lease that was gone before it looked.
            story.live_until = None;
        }
        for _ in 0..30 {
            story.goes_on(a.candidate()).await;
            story.happens();
        }
        check_writes(&story);
        // No candidate is left.
        story.live_until = None;
        is_listed(&story.server, "a").await;
        pass(20 * SECOND).await;
        name(&story.server, "a");
        within(SOON, &format!("it leads: {:#?}", story.told), a.candidate().elected()).await;
        a.stop().await;
        assert!(story.server.object(&path("a")).is_none(), "{:#?}", story.told);
    }
}

/// Each write was over a lease that named it.
fn check_writes(story: &Story) {
    let mut log = story.server.write_log();
    log.retain(|write| write.resource == "leases" && write.took_effect());
    for pair in log.windows(2) {
        let [before, write] = pair else { unreachable!() };
        let named = before.lease.as_ref().is_some_and(|lease| lease.holder_identity == "a");
        assert!(write.user != "a" || named, "{write:#?} over {before:#?}: {:#?}", story.told);
    }
    let acquired = lease_writes(&story.server, "a").len();
    assert!(acquired >= releases(&story.server, "a").len());
}
