//! A token, and what an operator writes, appear in no log line, error, `Debug` text, Event or metric.

use crate::{
    observers::metrics::scrape::Exporter,
    support::{until, within},
    work::runtime::logs::Logs,
};
use http::{Request, Response};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube_client::{
    Api, Client, Config,
    api::{ObjectMeta, PostParams},
    client::{AuthError, Body},
    config::{ExecConfig, ExecInteractiveMode},
};
use kube_leader_gate::{
    Election, ErrNotLeader, Identity, LeaseTiming,
    election::ElectionBuilder,
    health::Health,
    lease::LeasePool,
    testing::{ApiServer, Fault},
};
use std::{error::Error, fmt::Write as _, future::ready, time::Duration};
use tower::{BoxError, service_fn};
use tracing::Level;

const PATIENCE: Duration = Duration::from_secs(60);
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

/// What must appear nowhere: a token, the content of a write, and a part of its query.
const TOKEN: &str = "planted-token-5d1c";
const CONTENT: &str = "planted-content-77e0";
const MANAGER: &str = "planted-manager-a2";
const PASSWORD: &str = "planted-password-90b3";

fn builder(config: &Config, identity: &str) -> ElectionBuilder {
    Election::builder("default", "operator")
        .identity(Identity::new(identity).unwrap())
        .timing(
            // The test waits for the end of a term, which a busy machine must not bring about before.
            LeaseTiming::new(Duration::from_secs(8), Duration::from_secs(6), Duration::from_millis(500))
                .unwrap(),
        )
        .events(Client::try_from(config.clone()).unwrap())
        .metrics()
}

/// The URL with a user part.
fn with_user(url: &str) -> String {
    url.replace("://", &format!("://user:{PASSWORD}@"))
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
    let mut config = endpoint.config(TOKEN);
    config.cluster_url = with_user(&config.cluster_url.to_string()).parse().unwrap();
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
    until(PATIENCE, "a write is under way", || candidate.leadership().writes_under_way() > 0).await;
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
        for secret in [TOKEN, CONTENT, MANAGER, PASSWORD] {
            assert!(!text.contains(secret), "{secret} in {place}: {text}");
        }
    }
    for line in lines {
        // The spans of kube have the URL of a request, with its query, and the lines of hyper's pool its address.
        let is_of_a_client = line.contains("http.url=") || line.contains("hyper_util::client::legacy::pool");
        let secrets =
            if is_of_a_client { &[TOKEN, CONTENT][..] } else { &[TOKEN, CONTENT, MANAGER, PASSWORD] };
        for secret in secrets {
            assert!(!line.contains(secret), "{secret} in the log: {line}");
        }
    }
}

/// What each way to a client says of this configuration, if it makes none.
fn refusals(config: &Config) -> Vec<String> {
    let working = Config::new("http://127.0.0.1:1".parse().unwrap());
    let elected = builder(&working, "a").build(&working).unwrap();
    vec![
        texts(&builder(&working, "a").build(config).unwrap_err()),
        texts(&elected.client(config).err().unwrap()),
        texts(&LeasePool::new(config).unwrap_err()),
    ]
}

#[tokio::test]
async fn passwords_of_proxies_appear_in_no_error() {
    for proxy in ["socks5://proxy:1", "http://proxy:1/path?query", "https://proxy", "ftp://proxy:1"] {
        let mut config = Config::new("http://127.0.0.1:1".parse().unwrap());
        config.proxy_url = Some(with_user(proxy).parse().unwrap());
        for text in refusals(&config) {
            assert!(!text.contains(PASSWORD), "{text}");
            assert!(text.contains(proxy.split('?').next().unwrap()), "says which: {text}");
        }
    }
}

/// What it was given, and what it has printed: often a token.
#[tokio::test]
async fn secrets_of_credential_plugins_appear_in_no_error() {
    let fails = format!("echo {TOKEN}; echo {CONTENT} >&2; exit 3");
    for (script, said) in [
        (fails, "the credential plugin \"sh\" failed (exit status: 3)"),
        (format!("echo '{{ {TOKEN}'"), "ExecCredential"),
    ] {
        let mut config = Config::new("http://127.0.0.1:1".parse().unwrap());
        let env = [[("name".to_owned(), "SECRET".to_owned()), ("value".to_owned(), PASSWORD.to_owned())]];
        config.auth_info.exec = Some(ExecConfig {
            api_version: Some("client.authentication.k8s.io/v1".into()),
            command: Some("sh".into()),
            args: Some(vec!["-c".into(), script]),
            env: Some(env.map(Into::into).into()),
            interactive_mode: Some(ExecInteractiveMode::Never),
            ..ExecConfig::default()
        });
        for text in refusals(&config) {
            assert!(text.replace('\\', "").contains(said), "says why: {text}");
            for secret in [TOKEN, CONTENT, PASSWORD] {
                assert!(!text.contains(secret), "{secret}: {text}");
            }
        }
    }
}

/// The plugin runs again when the token that it gave has run out.
#[tokio::test]
async fn later_failures_of_credentials_show_no_secret() {
    let (logs, _capture) = Logs::capture_up_to(Level::TRACE);
    let fails = || AuthError::AuthExecRun {
        cmd: format!("A=\"{PASSWORD} \\\" \\\"\" \"plugin\" \"{CONTENT}\""),
        out: Box::new(std::process::Command::new("echo").arg(TOKEN).output().unwrap()),
    };
    let service = service_fn(move |_: Request<Body>| ready(Err::<Response<Body>, BoxError>(fails().into())));
    let client = Client::new(service, "default");
    let connect = {
        let client = client.clone();
        move || Ok(client.clone())
    };
    let working = Config::new("http://127.0.0.1:1".parse().unwrap());
    let election = builder(&working, "a").build_in(&LeasePool::over(connect).expect("a client")).unwrap();
    let refused = election.wrap(client).apiserver_version().await.unwrap_err();
    let running = election.start();
    until(PATIENCE, "trouble", || running.candidate().trouble().is_some()).await;
    let mut shown = vec![running.candidate().trouble().unwrap().to_string(), texts(&refused)];
    for text in &shown {
        let said = "the credential plugin \"plugin\" failed (exit status: 0)";
        assert!(text.replace('\\', "").contains(said), "says why: {text}");
    }
    running.stop().await;
    shown.extend(logs.lines());
    for (text, secret) in shown.iter().flat_map(|text| [TOKEN, CONTENT, PASSWORD].map(|it| (text, it))) {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}
