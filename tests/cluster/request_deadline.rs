//! How long a real API server works on a write whose sender has fallen silent.

use crate::{
    candidate::{Contender, builder, prepare, start, timing},
    real::Real,
    support::{PATIENCE, lease_writes, until, within},
    world::World,
};
use http::{Request, header::CONTENT_TYPE};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Api, Error, api::ListParams, client::ClientBuilder};
use kube_leader_gate::{
    WriteGateLayer,
    election::ElectionBuilder,
    leadership::{Grantor, Term},
    testing::WriteRecord,
};
use serde_json::{Value, json};
use std::time::Duration;
use test_support::apiserver::{Cluster, SlowWebhook, Stage};
use test_support::assert_safety;

/// Ten seconds longer than the lease, so that the next leader leads before. A webhook may take 30 s.
const TAKES: Duration = Duration::from_secs(25);

/// A write that waits for a webhook while its leader falls silent, until the webhook has long answered.
pub struct Silence {
    pub world: Real<&'static Cluster>,
    pub frozen: &'static str,
    pub next: &'static str,
}

impl Silence {
    /// The leader falls silent with the connection open, as a frozen process does. `with` completes both elections.
    pub async fn of(
        world: Real<&'static Cluster>,
        [frozen, next]: [&'static str; 2],
        stage: Stage,
        with: impl Fn(&Real<&'static Cluster>, &str, ElectionBuilder) -> ElectionBuilder,
    ) -> Self {
        prepare(&world).await;
        let webhook = SlowWebhook::register(world.cluster, world.namespace(), stage, TAKES).await;
        let leader = start(&world, frozen, with(&world, frozen, builder(&world, frozen))).await;
        leader.elected().await;
        let successor: Contender = start(&world, next, with(&world, next, builder(&world, next))).await;
        let client = leader.client.clone();
        let writing = tokio::spawn(async move { crate::candidate::write(&client).await });
        until("the webhook is asked", async || webhook.asked() == 1).await;
        leader.line.hold();
        leader.work.hold();
        successor.elected().await;
        let ended =
            async || world.writes().await.iter().any(|it| it.user == frozen && it.resource == "configmaps");
        until("the server has answered the write", ended).await;
        leader.work.mend();
        within(PATIENCE, "the writer learns of it", writing).await.expect("no panic").unwrap_err();
        Self { world, frozen, next }
    }

    /// The write of the frozen leader.
    pub async fn write(&self) -> WriteRecord {
        let mut log = self.world.writes().await;
        let is_it = |it: &WriteRecord| it.user == self.frozen && it.resource == "configmaps";
        let at = log.iter().position(is_it).expect("it was logged");
        log.remove(at)
    }

    /// Whether the write took effect after the takeover. The webhook has admitted it so long after it came, and nothing
    /// is committed before that.
    pub async fn landed_late(&self) -> bool {
        let claims = lease_writes(&self.world, self.next).await;
        let taken = claims.first().and_then(|it| it.completed).expect("a takeover");
        let write = self.write().await;
        write.took_effect() && write.received.at + TAKES > taken.at
    }
}

async fn frozen_while_the_server_works(bounded: bool) -> Silence {
    let world = Real::shared().await;
    Silence::of(world, ["candidate-0", "candidate-1"], Stage::Validating, |_, _, builder| {
        builder.request_deadline(bounded)
    })
    .await
}

/// Without a limit, the server carries the write out when the next leader leads already.
pub async fn write_without_bound_lands_after_takeover() {
    let silence = frozen_while_the_server_works(false).await;
    assert!(silence.landed_late().await, "{:?}", silence.write().await);
}

/// Rule S2, beyond the process: with the limit, the server gives the write up by itself.
pub async fn s2_bounded_write_never_lands_after_takeover() {
    let silence = frozen_while_the_server_works(true).await;
    assert_eq!(silence.write().await.status, 504);
    assert_safety!(!silence.landed_late().await, "the bounded write landed after the takeover");
    let world = &silence.world;
    let maps = Api::<ConfigMap>::namespaced(world.cluster.client("admin"), world.namespace());
    let map = maps
        .list(&ListParams::default())
        .await
        .expect("a list")
        .items
        .into_iter()
        .find(|it| it.metadata.name.as_deref() == Some("work"));
    assert!(map.expect("the map").data.is_none_or(|data| !data.contains_key("n")), "nothing was committed");
    assert!(timing().renew_deadline() < TAKES);
}

/// The gate's own limit stands before one that is not plain, so the server reads that one, and refuses none.
pub async fn limits_of_callers_are_read_as_the_server_reads_them() {
    let world = Real::shared().await;
    let grantor = Grantor::new();
    let deadline = grantor.now().saturating_add(Duration::from_secs(60));
    let _grant = grantor.grant(Term::new("u", 1), deadline).expect("a grant");
    let plain = world.cluster.client("admin");
    let builder = ClientBuilder::try_from(world.cluster.config("admin")).expect("a client");
    let gate = WriteGateLayer::new(grantor.leadership()).with_request_deadline(true);
    let bounded = builder.with_layer(&gate).build();
    for (limit, refused) in [
        ("1h", false),
        ("1s1h", false),
        ("1.5h30m", false),
        (".5h", false),
        ("1.h", false),
        ("%2B0.123456789012h", false),
        ("9000000%C2%B5s", false),
        ("9000000%CE%BCs", false),
        ("-1s", false),
        ("-0", false),
        ("0", false),
        ("1%20hour", true),
        ("PT1H", true),
        ("1:00:00", true),
        ("1h%20ago", true),
        ("h", true),
        ("1.2.3h", true),
        ("1h1", true),
        ("-", true),
        ("1d", true),
        ("9999999h", true),
        ("-9999999h", true),
    ] {
        for (client, refused) in [(&plain, refused), (&bounded, false)] {
            let path =
                format!("/api/v1/namespaces/{}/configmaps?dryRun=All&timeout={limit}", world.namespace());
            let map = json!({ "metadata": { "generateName": "map-" } }).to_string().into_bytes();
            let request =
                Request::post(path).header(CONTENT_TYPE, "application/json").body(map).expect("a request");
            let code = match client.request::<Value>(request).await {
                Ok(_) => 201,
                Err(Error::Api(status)) => status.code,
                Err(error) => panic!("{limit}: {error}"),
            };
            assert_eq!(code, if refused { 400 } else { 201 }, "{limit}");
        }
    }
}
