//! An election and a kube-runtime controller with `shutdown_on_signal`, for tests that send signals. The arguments say how
//! the election runs, and where the server is.

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Config,
    runtime::{Controller, controller::Action, watcher},
};
use kube_leader_gate::{Election, Identity, LeaseTiming, shutdown_signal};
use std::{
    convert::Infallible,
    env,
    error::Error,
    future::{pending, ready},
    sync::Arc,
    time::Duration,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_ansi(false).init();
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [how, server] = &arguments[..] else { return Err("usage: on_signals HOW SERVER".into()) };
    let mut config = Config::new(server.parse()?);
    config.auth_info.token = Some("a".into());
    let election = Election::builder("default", "operator")
        .identity(Identity::new("a")?)
        .timing(LeaseTiming::fast())
        .grace(Duration::from_secs(1))
        .build(&config)?;
    let maps: Api<ConfigMap> = Api::namespaced(election.client(&config)?, "default");
    let controller = || {
        Controller::new(maps.clone(), watcher::Config::default())
            .shutdown_on_signal()
            .run(
                |_, _| ready(Ok::<_, Infallible>(Action::await_change())),
                |_, _: &Infallible, _| Action::await_change(),
                Arc::new(()),
            )
            .for_each(|_| ready(()))
    };
    let signal = shutdown_signal()?;
    match how.as_str() {
        "run" => election.run(controller()).await.map(drop)?,
        "run_until" => election.run_until(signal, controller()).await.map(drop)?,
        "leading" => election.run_while_leading(signal, |_, _| controller()).await.map(drop)?,
        "alone" => election.run_while_leading(pending(), |_, _| controller()).await.map(drop)?,
        _ => return Err(format!("{how:?} is none of run, run_until, leading and alone").into()),
    }
    Ok(())
}
