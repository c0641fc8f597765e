//! A token, and what an operator writes, appear in no log line, error, `Debug` text, Event or metric.

use crate::{
    metrics::scrape::Exporter,
    runtime::logs::Logs,
    support::{until, within},
};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube_client::{
    Api, Client, Config,
    api::{ObjectMeta, PostParams},
};
use kube_leader_gate::{
    Election, ErrNotLeader, Identity, LeaseTiming,
    election::ElectionBuilder,
    health::Health,
    testing::{ApiServer, Fault},
};
use std::{error::Error, fmt::Write as _, time::Duration};
use tracing::Level;

const PATIENCE: Duration = Duration::from_secs(20);
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

/// What must appear nowhere: a token, the content of a write, and a part of its query.
const TOKEN: &str = "planted-token-5d1c";
const CONTENT: &str = "planted-content-77e0";
const MANAGER: &str = "planted-manager-a2";

fn builder(config: &Config, identity: &str) -> ElectionBuilder {
    Election::builder("default", "operator")
        .identity(Identity::new(identity).unwrap())
        .timing(
            LeaseTiming::new(Duration::from_secs(3), Duration::from_secs(2), Duration::from_millis(500))
                .unwrap(),
        )
        .events(Client::try_from(config.clone()).unwrap())
        .metrics()
}

async fn write(client: &Client, name: &str) -> Result<Secret, kube_client::Error> {
    let secret = Secret {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        data: Some([("password".to_owned(), ByteString(CONTENT.into()))].into()),
        ..Secret::default()
    };
    let params = PostParams { field_manager: Some(MANAGER.into()), ..PostParams::default() };
    Api::default_namespaced(client.clone()).create(&params, &secret).await
}

/// Everything that a program could show of this error.
fn texts(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        write!(text, "{error} {error:?} {error:#?} ").unwrap();
        next = error.source();
    }
    text
}

#[tokio::test]
async fn planted_secrets_appear_nowhere() {
    let (logs, _capture) = Logs::capture_up_to(Level::TRACE);
    let exporter = Exporter::install();
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    // Two replicas with this token. The server takes a token for the user's name, so both are the same user.
    let config = endpoint.config(TOKEN);
    let mut shown = String::new();

    let election = builder(&config, "a").build(&config).unwrap();
    let client = election.client(&config).unwrap();
    write!(shown, "{:?} {election:?}", builder(&config, "a")).unwrap();
    let running = election.start();
    let candidate = running.candidate().clone();
    within(PATIENCE, "a leads", candidate.elected()).await;
    write(&client, "admitted").await.unwrap();
    shown += &texts(&write(&client, "admitted").await.unwrap_err());

    // A follower's write.
    let follower = builder(&config, "b").build(&config).unwrap();
    let behind = follower.client(&config).unwrap();
    let follower = follower.start();
    until(PATIENCE, "b knows the holder", || follower.candidate().holder().is_some()).await;
    let refused = write(&behind, "refused").await.unwrap_err();
    assert!(ErrNotLeader::find(&refused).is_some(), "{refused}");
    shown += &texts(&refused);

    // A write that is cut off, an outage, and the loss of the lease.
    let _hung = server.inject(Fault::hang_before().verb("create").resource("secrets"));
    let cut = tokio::spawn(async move { write(&client, "cut off").await });
    until(PATIENCE, "a write is under way", || candidate.writes_under_way() > 0).await;
    endpoint.pause().await;
    let cut = within(PATIENCE, "the write ends", cut).await.unwrap().unwrap_err();
    shown += &texts(&cut);
    until(PATIENCE, "a has lost the lease", || !candidate.is_leader()).await;
    let health = Health::new(candidate.clone(), Duration::from_secs(1));
    write!(shown, "{candidate:?} {running:?} {follower:?} {health:?} {:?}", candidate.trouble()).unwrap();
    endpoint.resume().await;
    until(PATIENCE, "one of them leads again", || candidate.is_leader() || follower.candidate().is_leader())
        .await;
    until(PATIENCE, "events are written", || !server.objects(EVENTS).is_empty()).await;
    running.stop().await;
    follower.stop().await;

    let events = serde_json::to_string(&server.objects(EVENTS)).unwrap();
    let metrics = exporter.handle().render();
    let lines: Vec<_> =
        logs.lines().into_iter().filter(|line| !line.contains("fake_kube_apiserver")).collect();
    assert!(lines.len() > 50 && lines.iter().any(|line| line.contains("TRACE")), "{} lines", lines.len());
    assert!(metrics.contains("leader_gate_writes_total"), "{metrics}");
    for (place, text) in [("errors and Debug", &shown), ("events", &events), ("metrics", &metrics)] {
        for secret in [TOKEN, CONTENT, MANAGER] {
            assert!(!text.contains(secret), "{secret} in {place}: {text}");
        }
    }
    for line in lines {
        // kube's own span has the URL of a request, with its query.
        let secrets =
            if line.contains("http.url=") { &[TOKEN, CONTENT][..] } else { &[TOKEN, CONTENT, MANAGER] };
        for secret in secrets {
            assert!(!line.contains(secret), "{secret} in the log: {line}");
        }
    }
}
