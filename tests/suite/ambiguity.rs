//! Writes that leave something else in the lease than their answers, or their claims, say.

use crate::support::{SOON, builder, lease_writes, pass, spec, until};
use kube_client::Client;
use kube_leader_gate::{
    Election,
    election::{BuildError, Stopped},
    lease::{Claim, KubeLock, LeaseName, LeaseRecord, Lock, LockError, LockErrorKind},
    testing::{ApiServer, Fault},
};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq)]
enum Oddity {
    /// Creations are carried out and answered with an error.
    Denies,
    /// A webhook shortens whatever is claimed.
    Shortens,
}

struct Odd {
    inner: KubeLock,
    oddity: Oddity,
}

impl Odd {
    fn stored(&self, claim: &Claim) -> Claim {
        let mut claim = claim.clone();
        if self.oddity == Oddity::Shortens {
            claim.duration_seconds = 1;
        }
        claim
    }
}

impl Lock for Odd {
    type Events = <KubeLock as Lock>::Events;

    fn name(&self) -> &LeaseName {
        self.inner.name()
    }

    async fn get(&self) -> Result<Option<LeaseRecord>, LockError> {
        self.inner.get().await
    }

    async fn create(&self, claim: &Claim) -> Result<LeaseRecord, LockError> {
        let created = self.inner.create(&self.stored(claim)).await;
        let denied = LockError::new(LockErrorKind::Refused, "500: an internal error");
        if self.oddity == Oddity::Denies { Err(denied) } else { created }
    }

    async fn update(&self, seen: &LeaseRecord, claim: &Claim) -> Result<LeaseRecord, LockError> {
        self.inner.update(seen, &self.stored(claim)).await
    }

    async fn watch(&self) -> Result<Self::Events, LockError> {
        self.inner.watch().await
    }
}

fn odd(server: &ApiServer, oddity: Oddity) -> Election<Odd> {
    let service = server.service().user("a");
    let election = builder("a").build_with(|lease| {
        let connect = move || Ok(Client::new(service.clone(), "default"));
        Ok(Odd { inner: KubeLock::over(lease, connect).map_err(BuildError::Client)?, oddity })
    });
    election.expect("a valid election")
}

#[tokio::test(start_paused = true)]
async fn s5_a_creation_that_was_denied_and_done_is_given_up() {
    let server = ApiServer::new();
    let _no_watch = server.inject(Fault::forbidden().verb("watch"));
    let a = odd(&server, Oddity::Denies).start();
    until(SOON, "it is created", || !lease_writes(&server, "a").is_empty()).await;
    assert_eq!(spec(&server)["holderIdentity"], "a");
    assert_eq!(a.stop().await, Stopped::Released);
    assert_eq!(spec(&server)["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_shortens_every_claim_causes_no_flood() {
    let server = ApiServer::new();
    let a = odd(&server, Oddity::Shortens).start();
    pass(Duration::from_secs(60)).await;
    assert!(!a.leader().can_write(), "the others would take it after a second");
    let writes = lease_writes(&server, "a").len();
    assert!((10..=90).contains(&writes), "{writes} writes in 60 s");
}
