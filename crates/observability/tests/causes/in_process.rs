//! Causes within a program that uses the crate.

use crate::Said;
use http::Uri;
use kube_leader_gate::{
    Election, Identity, LeaseTiming, WriteGateLayer,
    health::Health,
    kube_client::{Client, Config},
    leadership::{Grantor, Loss, Term},
    lease::LeasePool,
    testing::{ApiServer, ManualClock},
};
use std::{convert::Infallible, error::Error, future::pending, sync::Arc, time::Duration};
use test_support::wait::until;
use tower::{Layer, ServiceExt, service_fn};

const PATIENCE: Duration = Duration::from_secs(60);
const TOLERATED: Duration = Duration::from_secs(20);

fn election(clock: &ManualClock) -> Election {
    let service = ApiServer::new().service();
    let pool = LeasePool::over(move || Ok(Client::new(service.clone(), "default"))).unwrap();
    let builder = Election::builder("default", "app").identity(Identity::new("a").unwrap());
    builder.clock(Arc::new(clock.clone())).build_in(&pool).unwrap()
}

pub(crate) async fn all() -> Vec<Said> {
    let mut said = probes().await;
    said.extend(writes().await);
    let settings = LeaseTiming::new(Duration::from_secs(15), Duration::from_secs(15), Duration::from_secs(2));
    let refused = settings.unwrap_err().to_string();
    said.push(Said::new("a timing that cannot work", "error", &refused));
    let mut config = Config::new("https://10.0.0.1:6443".parse().unwrap());
    config.proxy_url = Some(Uri::from_static("http://10.0.0.2:3128"));
    let refused = Election::builder("default", "app").build(&config).unwrap_err();
    said.push(Said::new("a program with HTTPS_PROXY in its shell", "error", &refused.to_string()));
    said
}

async fn probes() -> Vec<Said> {
    let clock = ManualClock::new();
    let built = election(&clock);
    let health = Health::new(built.candidate(), TOLERATED);
    let undriven = health.answer("/readyz").body;
    let running = built.start();
    // The task has not run yet.
    clock.advance(Duration::from_secs(200));
    let stuck = health.answer("/livez").body;
    drop(running);
    until(PATIENCE, "the election ends", || health.answer("/livez").body.contains("ended")).await;
    let ended = health.answer("/livez").body;
    vec![
        Said::new("the program never drives its election", "readyz", &undriven),
        Said::new("something blocks the election's task", "livez", &stuck),
        Said::new("the election has ended", "livez", &ended),
    ]
}

async fn writes() -> Vec<Said> {
    let grantor = Grantor::new();
    let gate = WriteGateLayer::new(grantor.leadership());
    let sent = async |method: &str, path: &str| {
        let service =
            gate.layer(service_fn(async |_: http::Request<()>| Ok::<_, Infallible>(http::Response::new(()))));
        let request = http::Request::builder().method(method).uri(path).body(()).unwrap();
        service.oneshot(request).await.unwrap_err().to_string()
    };
    let refused = sent("DELETE", "/apis/apps/v1/namespaces/shop/deployments/web").await;
    let odd = sent("GET", "//api/v1/pods").await;
    let until = grantor.now().saturating_add(Duration::from_secs(600));
    let _grant = grantor.grant(Term::new("uid", 1), until).unwrap();
    let leadership = grantor.leadership();
    let hangs = pending::<Result<(), Box<dyn Error + Send + Sync>>>();
    let write = leadership.guard("charge the card", hangs);
    grantor.revoke(Loss::Taken);
    let cut_off = write.await.unwrap_err().to_string();
    vec![
        Said::new("a follower writes", "error", &refused),
        Said::new("a read whose path has an odd spelling", "error", &odd),
        Said::new("another candidate takes the lease during a write", "error", &cut_off),
    ]
}
